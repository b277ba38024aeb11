// Correct kernels: the controls of the host run's tests, and the pairs whose cost is compared with hand-written CUDA.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/math.h"
#include "kernels/common/simt.h"

namespace twinbench::kernels::simt::examples {

// output[block] = sum of the block's share of input, in grid-stride order.
struct BlockSumArguments {
  const float* input;
  float* output;  // [grid]
  std::int64_t count;
};
struct BlockSum {
  static constexpr int kMaxThreads = 256;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BlockSumArguments& a) const {
    float sum = 0;
    for (std::int64_t i = global_index(block); i < a.count; i += global_count(block)) sum += a.input[i];
    sum = block_sum(block, sum);
    if (block.thread().x == 0) a.output[block.index().x] = sum;
  }
};

// output = input transposed, through a 32 x 32 tile padded to avoid bank conflicts. Blocks of 32 x 8 threads.
struct TransposeArguments {
  const float* input;  // [rows, columns]
  float* output;       // [columns, rows]
  int rows, columns;
};
struct TiledTranspose {
  static constexpr int kMaxThreads = 256;
  static constexpr int kTile = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TransposeArguments& a) const {
    auto tile = shared_array<float, kTile*(kTile + 1)>(block);
    const int x = static_cast<int>(block.thread().x), y = static_cast<int>(block.thread().y);
    const int column = static_cast<int>(block.index().x) * kTile, row = static_cast<int>(block.index().y) * kTile;
    for (int j = y; j < kTile; j += static_cast<int>(block.size().y)) {
      if (row + j < a.rows && column + x < a.columns) {
        tile[j * (kTile + 1) + x] = a.input[std::int64_t{row + j} * a.columns + column + x];
      }
    }
    block.barrier();
    for (int j = y; j < kTile; j += static_cast<int>(block.size().y)) {
      if (column + j < a.columns && row + x < a.rows) {
        a.output[std::int64_t{column + j} * a.rows + row + x] = tile[x * (kTile + 1) + j];
      }
    }
  }
};

// One block a row: softmax over `columns`, staged in dynamic shared memory (columns floats).
struct SoftmaxArguments {
  const float* input;  // [grid, columns]
  float* output;
  int columns;
};
struct RowSoftmax {
  static constexpr int kMaxThreads = 256;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SoftmaxArguments& a) const {
    const int first = static_cast<int>(block.thread().x), step = static_cast<int>(block.size().x);
    const float* row = a.input + std::int64_t{block.index().x} * a.columns;
    float* out = a.output + std::int64_t{block.index().x} * a.columns;
    auto staged = dynamic_shared<float>(block);
    float top = -INFINITY;
    for (int c = first; c < a.columns; c += step) {
      const float value = row[c];
      staged[c] = value;
      top = Larger{}(value, top);
    }
    top = block_max(block, top, -INFINITY);
    float sum = 0;
    for (int c = first; c < a.columns; c += step) {
      const float e = kernels::exp(staged[c] - top);
      staged[c] = e;
      sum += e;
    }
    sum = block_sum(block, sum);
    for (int c = first; c < a.columns; c += step) out[c] = staged[c] / sum;
  }
};

// counts[bin] += how often it occurs: first in shared memory by shared atomics, then one global atomic a bin.
struct HistogramArguments {
  const int* input;  // values in [0, 64)
  int* counts;       // [64]
  std::int64_t count;
};
struct Histogram {
  static constexpr int kMaxThreads = 256;
  static constexpr int kBins = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const HistogramArguments& a) const {
    auto bins = shared_array<int, kBins>(block);
    const int first = static_cast<int>(block.thread().x), step = static_cast<int>(block.size().x);
    for (int b = first; b < kBins; b += step) bins[b] = 0;
    block.barrier();
    for (std::int64_t i = global_index(block); i < a.count; i += global_count(block)) {
      atomic_add(block, bins + a.input[i], 1);
    }
    block.barrier();
    for (int b = first; b < kBins; b += step) {
      const int here = bins[b];
      if (here != 0) atomic_add(block, a.counts + b, here);
    }
  }
};

// Positions of the positive inputs of one warp, in order: ballot, and a warp-only exchange through shared memory.
struct CompactArguments {
  const float* input;  // [32]
  int* positions;      // [32], -1 past the last
};
struct WarpCompact {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const CompactArguments& a) const {
    auto found = shared_array<int, kWarpSize>(block);
    const int own = lane(block);
    found[own] = -1;
    block.warp_barrier();
    const bool positive = a.input[own] > 0.0f;
    const std::uint32_t votes = block.ballot(positive);
    int rank = 0;
    for (int i = 0; i < own; ++i) rank += static_cast<int>(votes >> i & 1u);
    if (positive) found[rank] = own;
    block.warp_barrier();
    a.positions[own] = found[own];
  }
};

}  // namespace twinbench::kernels::simt::examples
