// Keys that attention leaves out: the check that every query of a sample has one left.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>

#include "src/common/error.h"

namespace twinbench::energy_flow {

// `padding` [batch, keys], true where a key is left out. Throws kOutOfRange where a sample has no key left: its softmax
// is of nothing.
inline void check_padding(const at::Tensor& padding) {
  const at::Tensor there = padding.cpu().contiguous();
  const bool* row = there.const_data_ptr<bool>();
  for (std::int64_t sample = 0; sample < there.size(0); ++sample, row += there.size(1))
    if (std::all_of(row, row + there.size(1), [](bool out) { return out; }))
      throw Error(ErrorKind::kOutOfRange, "padding", "every key of sample " + std::to_string(sample),
                  "leave each sample a key: a text has its start");
}

}  // namespace twinbench::energy_flow
