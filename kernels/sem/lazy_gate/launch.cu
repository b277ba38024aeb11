// Launches sem.lazy_gate's kernels.
//
// version | idea                                                            | state
// 1       | four rows a block, x, r and p in shared memory; a thread a node, | replaced by 2
//         | a neighbour's weight read once for the four rows                |
// 2       | the same; neighbours of 32 nodes side by side, number and weight | in use: a lane no longer reads a sector
//         | in one access, four of them in flight                           | of its own, 33 entries apart
// Predicted before it was written, 131,072 rows of 256, 13 iterations of 33 entries (H200): 14 H-applies read 8 bytes
// of shared memory an entry and row, 124 GB in all: 3.9 ms; the floor of the gather form is 3.5 ms, DRAM's 250 us. On
// the RTX 5090, of which a multiprocessor has half of that bandwidth to a FLOP: 4 ms. One launch a call.
// The way back: the adjoint system the same way, one H-apply more than forward's iterations, one launch a call; then,
// over all calls at once, the library's product of the factors and the edges.
// Modelled, 32 rows of 256 from an empty cache: version 1 49.3 us (H200), 36.7 (RTX 5090); version 2 32.9 and 23.2.
#include "kernels/common/simt_device.h"
#include "kernels/sem/lazy_gate/adjoint_kernel.h"
#include "kernels/sem/lazy_gate/kernel.h"

namespace twinbench::sem::lazy_gate {

void launch_call(const CallArguments& a, kernels::Stream stream) {
  const int rows = rows_of(a.dim);
  const dim3 grid = simt::grid(kernels::blocks_of(a.rows, rows));
  if (rows == kTileRows)
    simt::launch(SolveTile{}, grid, kThreads, shared_bytes(a.dim), stream, a);
  else
    simt::launch(SolveOne{}, grid, kThreads, shared_bytes(a.dim), stream, a);
}

void launch_adjoint(const AdjointArguments& a, kernels::Stream stream) {
  const int rows = rows_of(a.dim);
  const dim3 grid = simt::grid(kernels::blocks_of(a.rows, rows));
  if (rows == kTileRows)
    simt::launch(AdjointTile{}, grid, kThreads, shared_bytes(a.dim), stream, a);
  else
    simt::launch(AdjointOne{}, grid, kThreads, shared_bytes(a.dim), stream, a);
}

void launch_edges(const EdgeArguments& a, kernels::Stream stream) {
  simt::launch(Edges{}, simt::grid(edge_blocks(a.edges)), kEdgeThreads, 0, stream, a);
}

}  // namespace twinbench::sem::lazy_gate
