// What launches of blocks that run at once must keep to besides check_launch: the same refusal on a card and on the
// host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/common/launch_check.h"

namespace twinbench::kernels::simt {

constexpr int kMostClusterBlocks = 8;  // that every card with clusters takes
// Of the smaller card (H200) and of a multiprocessor (compute capability 12.0): what the whole grid must fit into.
constexpr std::int64_t kFewestMultiprocessors = 132, kFewestThreads = 1536, kFewestSharedBytes = 100 * 1024,
                       kReservedSharedBytes = 1024;

// Throws Error(kBadLaunch) unless the grid is whole clusters of a size that cards take.
inline void check_cluster(std::string (*name)(), Index3 grid, int cluster) {
  if (cluster < 1 || cluster > kMostClusterBlocks)
    throw Error(ErrorKind::kBadLaunch, name() + " cluster", std::to_string(cluster) + " blocks",
                "from 1 to " + std::to_string(kMostClusterBlocks) + " blocks");
  if (grid.x % static_cast<unsigned>(cluster) != 0)
    throw Error(ErrorKind::kBadLaunch, name() + " grid", std::to_string(grid.x) + " blocks along x",
                "a multiple of the cluster's " + std::to_string(cluster));
}

// Blocks that surely run at once on every supported card: by threads, shared memory, and, for the registers, the
// kernel's promise (kMinBlocksPerSm; one where it makes none).
inline std::int64_t most_cooperative_blocks(const Launch& launch, int min_blocks_per_sm) {
  const std::int64_t threads = std::int64_t{launch.block.x} * launch.block.y * launch.block.z;
  const std::int64_t shared = static_cast<std::int64_t>(launch.dynamic_shared_bytes) + kReservedSharedBytes;
  const std::int64_t a_multiprocessor =
      std::min({std::int64_t{std::max(1, min_blocks_per_sm)}, kFewestThreads / std::max<std::int64_t>(1, threads),
                kFewestSharedBytes / shared});
  return kFewestMultiprocessors * a_multiprocessor;
}

// Throws Error(kBadLaunch) where not all blocks surely run at once: a barrier of the grid would wait for ever.
inline void check_cooperative(std::string (*name)(), const Launch& launch, int min_blocks_per_sm) {
  const std::int64_t blocks = std::int64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const std::int64_t most = most_cooperative_blocks(launch, min_blocks_per_sm);
  if (blocks > most)
    throw Error(ErrorKind::kBadLaunch, name() + " cooperative grid", std::to_string(blocks) + " blocks",
                "at most " + std::to_string(most) + ", which run at once on every supported card; let blocks stride");
}

// Blocks an SM must be able to hold at once: Kernel::kMinBlocksPerSm, or 0 (no demand) if the kernel names none.
template <class Kernel>
constexpr int promised_blocks_per_sm() {
  if constexpr (requires { Kernel::kMinBlocksPerSm; }) {
    return Kernel::kMinBlocksPerSm;
  } else {
    return 0;
  }
}

}  // namespace twinbench::kernels::simt
