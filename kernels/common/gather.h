// Copying kernels: a matrix of any strides into operands, and plain values to bf16. 16-byte accesses where rows allow
// them, four in flight.
#pragma once

#include "kernels/common/arguments.h"
#include "kernels/common/grid.h"
#include "kernels/common/vectors.h"

namespace twinbench::kernels {

// Grid: row_pieces of kCopyPiece.
struct Gather {
  static constexpr int kMaxThreads = kPieceThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const GatherArguments& a) const {
    for (std::int64_t row = block.index().y; row < a.rows; row += block.grid().y) {
      const std::int64_t to = row * a.columns;
      const float* from = a.from.data + row * a.from.row_stride;
      if (a.from.column_stride == 1 && allows_four(a.from.row_stride, a.from.data) && allows_four(a.columns, a.to))
        copy<4>(
            block, a, [=](std::int64_t i) { return load<4>(from + i); }, to);
      else
        copy<1>(
            block, a, [=, stride = a.from.column_stride](std::int64_t i) { return load<1>(from + i * stride); }, to);
    }
  }

 private:
  template <int kWidth, class Block, class Load>
  static TWINBENCH_DEVICE void copy(Block& block, const GatherArguments& a, Load load, std::int64_t to) {
    in_batches<kCopyBatch>(
        simt::global_index(block), simt::global_count(block), a.columns / kWidth,
        [=](std::int64_t i) { return load(i * kWidth); },
        [&a, to](std::int64_t i, const Floats<kWidth>& values) { store(a.to, to + i * kWidth, values); });
  }
};

// Grid: copying_blocks.
struct RoundToBf16 {
  static constexpr int kMaxThreads = kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const RoundArguments& a) const {
    if (allows_four(a.count, a.values, a.rounded))
      round<4>(block, a);
    else
      round<1>(block, a);
  }

 private:
  template <int kWidth, class Block>
  static TWINBENCH_DEVICE void round(Block& block, const RoundArguments& a) {
    in_batches<kCopyBatch>(
        simt::global_index(block), simt::global_count(block), a.count / kWidth,
        [&a](std::int64_t i) { return load<kWidth>(a.values + i * kWidth); },
        [&a](std::int64_t i, const Floats<kWidth>& values) { store_bf16(a.rounded + i * kWidth, values); });
  }
};

}  // namespace twinbench::kernels
