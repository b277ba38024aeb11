// Column sums in a fixed order, so that they are the same bits on every run: the loop, and the plain kernel over it.
#pragma once

#include "kernels/common/arguments.h"
#include "kernels/common/simt.h"
#include "kernels/common/vectors.h"
#include "kernels/common/warp_sums.h"

namespace twinbench::kernels {

constexpr int kSumThreads = 256;
constexpr int kSumColumns = 8;     // of a block: one 32-byte sector of every row, so that few columns fill the chip too
constexpr int kSumRowThreads = 2;  // of four columns each
constexpr int kSumRowLanes = kSumThreads / kSumRowThreads;  // rows a block reads at once
constexpr int kSumBatch = 4;                                // rows of a thread in flight

// Four columns of kSums sums.
template <int kSums>
struct ColumnTerms {
  Floats<4> of[kSums];
};

// columns[column ... column + 3] of a row, zeros past the last; in one access where `wide` allows it.
TWINBENCH_DEVICE Floats<4> load_columns(const float* row, std::int64_t column, std::int64_t columns, bool wide) {
  if (wide && column + 4 <= columns) return load<4>(row + column);
  Floats<4> values{};
  TWINBENCH_UNROLL
  for (int i = 0; i < 4; ++i)
    if (column + i < columns) values.of[i] = row[column + i];
  return values;
}

// kSums sums over the rows of every column: terms(row, column) gives those of columns [column, column + 4), zeros past
// the last; store(column, sums) gets the totals of one column. A thread adds every kSumRowLanes-th row in ascending
// order; then lanes, then warps are added in a fixed tree. Grid: blocks_of(columns, kSumColumns), kSumThreads threads.
template <int kSums, class Block, class Terms, class Store>
TWINBENCH_DEVICE void sum_columns(Block& block, std::int64_t rows, std::int64_t columns, Terms terms, Store store) {
  const int thread = simt::thread_rank(block), part = thread % kSumRowThreads;
  const std::int64_t first = static_cast<std::int64_t>(block.index().x) * kSumColumns, column = first + 4 * part;
  ColumnTerms<kSums> total{};
  const auto add = [&total](const ColumnTerms<kSums>& more) {
    TWINBENCH_UNROLL
    for (int s = 0; s < kSums; ++s) total.of[s] = map(total.of[s], more.of[s], [](float a, float b) { return a + b; });
  };
  in_batches<kSumBatch, std::int64_t>(
      thread / kSumRowThreads, kSumRowLanes, rows, [&](std::int64_t row) { return terms(row, column); },
      [&](std::int64_t, const ColumnTerms<kSums>& more) { add(more); });

  constexpr int kWarps = kSumThreads / simt::kWarpSize;
  auto partial = simt::shared_array<float, kSums * kSumColumns * kWarps>(block);
  // Each group of eight lanes goes on with one of the four columns: 5 shuffles, not 16. Few rows leave warps idle.
  constexpr int kGroup = simt::kWarpSize / 4;
  const int lane = simt::lane(block), group = lane / kGroup;
  const bool has_rows = simt::warp(block) * (simt::kWarpSize / kSumRowThreads) < rows;
  TWINBENCH_UNROLL
  for (int s = 0; s < kSums; ++s) {
    float sum = 0.0f;
    if (has_rows) {  // the whole warp
      sum = scattered_sums(block, total.of[s].of);
      TWINBENCH_UNROLL
      for (int lanes = kGroup / 2; lanes >= kSumRowThreads; lanes /= 2) sum += block.shuffle_xor(sum, lanes);
    }
    if (lane % kGroup < kSumRowThreads) partial[(simt::warp(block) * kSums + s) * kSumColumns + 4 * part + group] = sum;
  }
  block.barrier();
  if (thread >= kSumColumns || first + thread >= columns) return;
  float sums[kSums];
  TWINBENCH_UNROLL
  for (int s = 0; s < kSums; ++s) {
    sums[s] = 0.0f;
    TWINBENCH_UNROLL
    for (int warp = 0; warp < kWarps; ++warp) {
      const float other = partial[(warp * kSums + s) * kSumColumns + thread];
      sums[s] += other;
    }
  }
  store(first + thread, sums);
}

struct ColumnSums {
  static constexpr int kMaxThreads = kSumThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ColumnSumArguments& a) const {
    const std::int64_t stride = a.stride;  // widened once
    const bool wide = allows_four(stride, a.rows);
    sum_columns<1>(
        block, a.count, a.columns,
        [&](std::int64_t row, std::int64_t column) {
          return ColumnTerms<1>{{load_columns(a.rows + row * stride, column, a.columns, wide)}};
        },
        [&](std::int64_t column, const float* sums) { a.sums[column] = sums[0]; });
  }
};

}  // namespace twinbench::kernels
