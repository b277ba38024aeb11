// A block's tile of a bf16 product on tensor cores: k slices through shared memory, copied ahead asynchronously.
#pragma once

#include "kernels/common/simt_async.h"
#include "kernels/common/simt_mma.h"
#include "kernels/common/slice.h"

namespace twinbench::kernels {

// Copies values [k, k + kSliceDepth) of kRows rows to `to`, zeros where row_at(row) gives null and past `inner`, a
// multiple of kChunk. Rows start at multiples of 16 bytes. All kThreads threads take part; nothing is committed.
template <int kRows, int kThreads, class Block, class Shared, class RowAt>
TWINBENCH_DEVICE void copy_slice(Block& block, Shared to, int thread, int k, int inner, const std::uint16_t* anywhere,
                                 RowAt row_at) {
  constexpr int kChunks = kRows * kChunksARow;
  static_assert(kChunks % simt::kWarpSize == 0, "whole warps copy");
  TWINBENCH_UNROLL
  for (int i = 0; i < (kChunks + kThreads - 1) / kThreads; ++i) {
    const int index = i * kThreads + thread;
    if ((i + 1) * kThreads > kChunks && index >= kChunks) break;
    const int row = index / kChunksARow, chunk = index % kChunksARow;
    const std::uint16_t* from = row_at(row);
    const bool valid = from != nullptr && k + chunk * kChunk < inner;
    simt::async_copy_or_zeros<16>(block, to + slice_position(row, chunk), valid ? from + k + chunk * kChunk : anywhere,
                                  valid);
  }
}

// Rows [row, row + 16) and values [16 * step, 16 * step + 16) of a slice, as the left factor.
template <class Block, class Shared>
TWINBENCH_DEVICE simt::LeftTile load_left(Block& block, Shared slice, int lane, int row, int step) {
  const int matrix = lane / 8;
  simt::LeftTile tile;
  simt::load_matrices(block, slice + slice_position(row + matrix % 2 * 8 + lane % 8, 2 * step + matrix / 2), tile.of);
  return tile;
}

// The same rows as the right factor: columns [row, row + 8) and [row + 8, row + 16) of the product.
struct TwoRightTiles {
  simt::RightTile of[2];
};
template <class Block, class Shared>
TWINBENCH_DEVICE TwoRightTiles load_right(Block& block, Shared slice, int lane, int row, int step) {
  const int matrix = lane / 8;
  std::uint32_t words[4];
  simt::load_matrices(block, slice + slice_position(row + matrix / 2 * 8 + lane % 8, 2 * step + matrix % 2), words);
  return {{{{words[0], words[1]}}, {{words[2], words[3]}}}};
}

}  // namespace twinbench::kernels
