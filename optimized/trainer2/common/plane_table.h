// The rotor's plane table as kernels take it, made once at set-up: axes apart, and how many planes may turn at once.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <set>

namespace twinbench::trainer2 {

// int32 [2, at least planes] of the active slots of an int64 [slots, 2] table, on its device: first axes, then second
// ones, each row of whole 32-byte sectors, so that neighbouring lanes read neighbouring words.
inline at::Tensor axes_of_planes(const at::Tensor& plane_axes, std::int64_t planes) {
  const at::Tensor rows = at::zeros({2, (planes + 7) / 8 * 8}, plane_axes.options().dtype(at::kInt));
  rows.slice(1, 0, planes).copy_(plane_axes.slice(0, 0, planes).t());
  return rows;
}

// A whole layer, unless some layer uses an axis twice: then one plane after the other.
inline int planes_at_once(const at::Tensor& plane_axes, std::int64_t planes, std::int64_t per_layer) {
  const at::Tensor table = plane_axes.cpu().contiguous();
  const auto* const pair = table.const_data_ptr<std::int64_t>();
  std::set<std::int64_t> used;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    if (plane % per_layer == 0) used.clear();
    if (!used.insert(pair[2 * plane]).second || !used.insert(pair[2 * plane + 1]).second) return 1;
  }
  return static_cast<int>(per_layer);
}

}  // namespace twinbench::trainer2
