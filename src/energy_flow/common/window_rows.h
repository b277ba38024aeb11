// A window shared by ranks (C33): how many rows each has, how it ends, whether all ranks still have equal parameters.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "src/common/error.h"
#include "src/energy_flow/common/optimizer_rule.h"
#include "src/process_group.h"

namespace twinbench::energy_flow {

// Rows of a rank's micro-step, and of the whole window: by these its gradients weigh.
struct WindowRows {
  std::int64_t ranks = 0, micro_steps = 0, all = 0;
  std::vector<std::int64_t> of;  // [ranks * micro_steps]
  std::int64_t at(int rank, std::int64_t micro_step) const {
    return of[static_cast<std::size_t>(rank * micro_steps + micro_step)];
  }
};

// From the input `rows`. Throws kOutOfRange for fewer than 0, or none at all.
inline WindowRows window_rows(const at::Tensor& rows) {
  WindowRows result{rows.size(0), rows.size(1), 0, {}};
  const at::Tensor given = rows.contiguous();
  for (std::int64_t i = 0; i < given.numel(); ++i) {
    result.of.push_back(given.const_data_ptr<std::int64_t>()[i]);
    if (result.of.back() < 0)
      throw Error(ErrorKind::kOutOfRange, "rows", std::to_string(result.of.back()), "rows are counted from 0");
    result.all += result.of.back();
  }
  if (result.all == 0) throw Error(ErrorKind::kOutOfRange, "rows", "0 in all ranks", "a window has a row");
  return result;
}

// How a rank's window ended, the same in every rank.
struct WindowEnd {
  bool applied = false;
  double norm = 0;
};

// C25 for a norm: what the gradients are multiplied with.
inline double clip_coefficient(double norm, double clip) {
  return clip > 0 ? std::min(1.0, clip / (norm + kClipEpsilon)) : 1;
}

// Rank 0's digest of the parameters against this rank's: asked for when made, judged by check().
class ParameterDigest {
 public:
  ParameterDigest(ProcessGroup& group, const at::Tensor& parameters)
      : group_(group), first_(at::empty({1}, at::kLong)), mine_(digest(parameters)) {
    *first_.mutable_data_ptr<std::int64_t>() = mine_;
    group.begin_broadcast(first_);
  }
  // Throws kCorrupt, naming the rank that has drifted.
  void check(std::int64_t window) const {
    group_.wait_all();
    if (*first_.const_data_ptr<std::int64_t>() == mine_) return;
    throw Error(ErrorKind::kCorrupt, "parameters of rank " + std::to_string(group_.rank()),
                "another digest than rank 0's after window " + std::to_string(window),
                "restore all ranks from the last checkpoint");
  }

 private:
  static std::int64_t digest(const at::Tensor& parameters) {
    return static_cast<std::int64_t>(
        ::crc32_z(0, static_cast<const std::uint8_t*>(parameters.const_data_ptr()), parameters.nbytes()));
  }

  ProcessGroup& group_;
  at::Tensor first_;
  std::int64_t mine_;
};

}  // namespace twinbench::energy_flow
