// Sizes of grids, shared by launchers and host tests.
#pragma once

#include <cstdint>

#include "kernels/common/simt.h"

namespace twinbench::kernels {

constexpr int kElementThreads = 256;        // of a thread an element
constexpr std::int64_t kMostBlocks = 4096;  // of a grid-stride loop: fills any chip several times over

// Blocks of `each` that cover `count`.
constexpr std::int64_t blocks_of(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }
// The same for kernels whose threads stride over the rest.
constexpr std::int64_t striding_blocks(std::int64_t count, std::int64_t each, std::int64_t most = kMostBlocks) {
  return blocks_of(count, each) < most ? blocks_of(count, each) : most;
}
// A warp an item.
constexpr std::int64_t warp_blocks(std::int64_t items, std::int64_t threads) {
  return blocks_of(items, threads / simt::kWarpSize);
}

}  // namespace twinbench::kernels
