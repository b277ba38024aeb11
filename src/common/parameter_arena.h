// An arena of parameters, tensors that lie one after the other: where each begins, and the counts of its updates.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/common/error.h"

namespace twinbench {

struct TensorPlace {
  std::int64_t first = 0, count = 0;  // elements of the arena
};

// The tensors that `offsets` (int64 [tensors + 1]) describes, read at set-up, checked: they fill `elements` without
// gaps. Throws kOutOfRange, naming tensor and remedy.
inline std::vector<TensorPlace> tensor_places(const at::Tensor& offsets, std::int64_t elements) {
  const at::Tensor given = offsets.cpu().contiguous();
  const auto* const offset = given.const_data_ptr<std::int64_t>();
  const std::int64_t tensors = given.numel() - 1;
  if (offset[0] != 0 || offset[tensors] != elements)
    throw Error(ErrorKind::kOutOfRange, "offsets",
                "from " + std::to_string(offset[0]) + " to " + std::to_string(offset[tensors]),
                "begin at 0 and end at the arena's length, " + std::to_string(elements));
  std::vector<TensorPlace> places;
  for (std::int64_t tensor = 0; tensor < tensors; ++tensor) {
    if (offset[tensor + 1] < offset[tensor])  // a difference could overflow
      throw Error(ErrorKind::kOutOfRange, "offsets", "tensor " + std::to_string(tensor),
                  "offsets do not fall: a tensor has 0 elements or more");
    places.push_back({offset[tensor], offset[tensor + 1] - offset[tensor]});
  }
  return places;
}

// Far above any training, and low enough that it may go on from there: an attempt is 32 bits of the noise's key.
constexpr std::int64_t kMostUpdates = 0x7fffffff;

// Updates applied, suppressed and the like, in a state; checked at set-up. Throws kOutOfRange.
inline void check_update_counts(const at::Tensor& given) {
  const at::Tensor counts = given.cpu().contiguous();
  for (std::int64_t i = 0; i < counts.numel(); ++i)
    if (const std::int64_t count = counts.const_data_ptr<std::int64_t>()[i]; count < 0 || count > kMostUpdates)
      throw Error(ErrorKind::kOutOfRange, "counts", std::to_string(count) + " at [" + std::to_string(i) + "]",
                  "updates are counted from 0, to " + std::to_string(kMostUpdates) + " at most");
}

}  // namespace twinbench
