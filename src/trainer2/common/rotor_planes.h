// The rotor's plane schedule (trainer2 C08): which two axes every plane slot turns, and the check of a given table.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <string>

#include "src/common/error.h"

namespace twinbench::trainer2 {

// Slot (layer l, j) turns axes ((2j + l) mod axes, the next one); `per_layer` slots a layer. int64 [slots, 2], on the
// CPU.
inline at::Tensor built_in_planes(std::int64_t slots, std::int64_t per_layer, std::int64_t axes) {
  at::Tensor planes = at::empty({slots, 2}, at::kLong);
  auto* const pair = planes.mutable_data_ptr<std::int64_t>();
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    pair[2 * slot] = (2 * (slot % per_layer) + slot / per_layer) % axes;
    pair[2 * slot + 1] = (pair[2 * slot] + 1) % axes;
  }
  return planes;
}

// Every slot names two different axes below `axes`. `plane_axes`: int64 [slots, 2]; read at set-up, where the plan is
// built.
// Throws kOutOfRange naming slot, axes and remedy.
inline void check_planes(const at::Tensor& plane_axes, std::int64_t axes) {
  const at::Tensor table = plane_axes.cpu().contiguous();
  const auto* const pair = table.const_data_ptr<std::int64_t>();
  for (std::int64_t slot = 0; slot < table.size(0); ++slot) {
    const std::int64_t a = pair[2 * slot], b = pair[2 * slot + 1];
    if (a < 0 || b < 0 || a >= axes || b >= axes || a == b)
      throw Error(ErrorKind::kOutOfRange, "plane_axes",
                  "(" + std::to_string(a) + ", " + std::to_string(b) + ") in slot " + std::to_string(slot),
                  "a plane turns two different axes below " + std::to_string(axes));
  }
}

}  // namespace twinbench::trainer2
