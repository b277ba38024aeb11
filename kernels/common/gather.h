// Copying kernels: a matrix of any strides into operands, and plain values to bf16. Grids stride.
#pragma once

#include "kernels/common/arguments.h"
#include "kernels/common/grid.h"

namespace twinbench::kernels {

struct Gather {
  static constexpr int kMaxThreads = kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const GatherArguments& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.rows * a.columns; i += simt::global_count(block))
      a.to.store(i, a.from.at(i / a.columns, i % a.columns));
  }
};

struct RoundToBf16 {
  static constexpr int kMaxThreads = kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const RoundArguments& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.count; i += simt::global_count(block))
      a.rounded[i] = bf16_bits(a.values[i]);
  }
};

}  // namespace twinbench::kernels
