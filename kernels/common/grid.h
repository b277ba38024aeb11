// Sizes of grids, shared by launchers and host tests.
#pragma once

#include <cstdint>

#include "kernels/common/simt.h"

namespace twinbench::kernels {

constexpr int kElementThreads = 256;        // of a thread an element
constexpr std::int64_t kMostBlocks = 4096;  // of a grid-stride loop: fills any chip several times over
constexpr int kCopyBatch = 4;               // 16-byte accesses of a copying thread in flight
constexpr int kPieceThreads = 64;           // of a block that copies a piece of a row: rows are few and long
constexpr std::int64_t kCopyPiece = kPieceThreads * 4;  // elements of a piece

// Blocks of `each` that cover `count`.
constexpr std::int64_t blocks_of(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }
// The same for kernels whose threads stride over the rest.
constexpr std::int64_t striding_blocks(std::int64_t count, std::int64_t each, std::int64_t most = kMostBlocks) {
  return blocks_of(count, each) < most ? blocks_of(count, each) : most;
}
// Of a kernel that copies `count` elements: a batch of accesses a thread where that still gives each of 170
// multiprocessors two blocks, else one access.
constexpr std::int64_t copying_blocks(std::int64_t count) {
  constexpr std::int64_t kFew = 340, kEach = kElementThreads * 4;
  const std::int64_t batches = striding_blocks(count, kEach * kCopyBatch);
  return batches >= kFew ? batches : striding_blocks(count, kEach, kFew);
}
// Pieces of a row along x, rows along y; kernels stride over rows past the largest grid.
constexpr simt::Index3 row_pieces(std::int64_t rows, std::int64_t width, std::int64_t piece) {
  return {static_cast<unsigned>(blocks_of(width, piece)), static_cast<unsigned>(rows < 65535 ? rows : 65535), 1};
}
// A warp an item.
constexpr std::int64_t warp_blocks(std::int64_t items, std::int64_t threads) {
  return blocks_of(items, threads / simt::kWarpSize);
}

}  // namespace twinbench::kernels
