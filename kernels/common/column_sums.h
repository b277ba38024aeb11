// Column sums in a fixed order, so that they are the same bits on every run: the loop, and the plain kernels over it.
#pragma once

#include "kernels/common/arguments.h"
#include "kernels/common/simt.h"

namespace twinbench::kernels {

constexpr int kSumThreads = 256;

// kSums sums over the rows of every column: add(row, column, sums) adds the terms of one row, store(column, sums) gets
// the totals. A block has kSumThreads / kRowLanes columns along x and kRowLanes interleaved partial sums along y; with
// one lane the rows are added in ascending order and there is no barrier.
template <int kSums, int kRowLanes, class Block, class Add, class Store>
TWINBENCH_DEVICE void sum_columns(Block& block, std::int64_t rows, std::int64_t columns, Add add, Store store) {
  constexpr int kColumns = kSumThreads / kRowLanes;
  const int x = static_cast<int>(block.thread().x), y = static_cast<int>(block.thread().y);
  const std::int64_t column = static_cast<std::int64_t>(block.index().x) * kColumns + x;
  float sums[kSums] = {};
  if constexpr (kRowLanes == 1) {
    if (column >= columns) return;
    for (std::int64_t row = 0; row < rows; ++row) add(row, column, sums);
  } else {
    if (column < columns)
      for (std::int64_t row = y; row < rows; row += kRowLanes) add(row, column, sums);
    auto partial = simt::shared_array<float, kSums * kSumThreads>(block);
    for (int s = 0; s < kSums; ++s) partial[(s * kRowLanes + y) * kColumns + x] = sums[s];
    block.barrier();
    if (y != 0) return;
    for (int s = 0; s < kSums; ++s)
      for (int lane = 1; lane < kRowLanes; ++lane) {
        const float other = partial[(s * kRowLanes + lane) * kColumns + x];
        sums[s] += other;
      }
  }
  if (column < columns) store(column, sums);
}

template <int kRowLanes, class Block>
TWINBENCH_DEVICE void sum_plain_columns(Block& block, const ColumnSumArguments& a) {
  const std::int64_t stride = a.stride;  // widened once
  sum_columns<1, kRowLanes>(
      block, a.count, a.columns,
      [&](std::int64_t row, std::int64_t column, float* sums) { sums[0] += a.rows[row * stride + column]; },
      [&](std::int64_t column, const float* sums) { a.sums[column] = sums[0]; });
}

// Blocks of kColumns x kRowLanes threads.
struct ColumnSums {
  static constexpr int kMaxThreads = kSumThreads;
  static constexpr int kRowLanes = 8;
  static constexpr int kColumns = kSumThreads / kRowLanes;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ColumnSumArguments& a) const {
    sum_plain_columns<kRowLanes>(block, a);
  }
};

// A thread a column, rows ascending.
struct OrderedColumnSums {
  static constexpr int kMaxThreads = kSumThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ColumnSumArguments& a) const {
    sum_plain_columns<1>(block, a);
  }
};

}  // namespace twinbench::kernels
