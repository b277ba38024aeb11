// Blocks that run at once: thread block clusters that read one another's shared memory, and barriers of the whole grid.
//
//   auto sums = shared_array<float, 1>(block);  sums[0] = ...;
//   cluster_barrier(block);                                     // every block's array is there
//   total += *cluster_shared(block, sums, other);               // another block's, by its rank in the cluster
//   cluster_barrier(block);                                     // nobody ends while others may still read its array
//
// The launches are in kernels/common/simt_team_launch.h. On the host the blocks' threads take turns; a barrier that some
// never reach, reads of another block's array without one, and blocks that may end too early are findings.
#pragma once

#include "kernels/common/simt.h"

#if defined(__CUDACC__)
#include <cooperative_groups.h>
#endif

namespace twinbench::kernels::simt {

// Rank of this block in its cluster, and blocks of the cluster.
template <class Block>
TWINBENCH_DEVICE int cluster_rank(Block& block) {
#if defined(__CUDACC__)
  return static_cast<int>(cooperative_groups::this_cluster().block_rank());
#else
  return host_cluster_rank(block);
#endif
}
template <class Block>
TWINBENCH_DEVICE int cluster_size(Block& block) {
#if defined(__CUDACC__)
  return static_cast<int>(cooperative_groups::this_cluster().num_blocks());
#else
  return host_cluster_size(block);
#endif
}

// Every thread of every block of the cluster waits; orders shared and global memory among them.
template <class Block>
TWINBENCH_DEVICE void cluster_barrier(Block& block, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
#if defined(__CUDACC__)
  cooperative_groups::this_cluster().sync();
#else
  host_cluster_barrier(block, file, line);
#endif
}

// The same position of the shared memory of block `rank` of the cluster.
template <class Block, class Shared>
TWINBENCH_DEVICE Shared cluster_shared(Block& block, Shared own, int rank) {
#if defined(__CUDACC__)
  return cooperative_groups::this_cluster().map_shared_rank(own, static_cast<unsigned>(rank));
#else
  return host_cluster_shared(block, own, rank);
#endif
}

// Every thread of the grid waits; orders global memory among all of them. In a cooperative launch only.
template <class Block>
TWINBENCH_DEVICE void grid_barrier(Block& block, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
#if defined(__CUDACC__)
  cooperative_groups::this_grid().sync();
#else
  host_grid_barrier(block, file, line);
#endif
}

}  // namespace twinbench::kernels::simt
