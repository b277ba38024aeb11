// Launches the embedding mapper's own kernels.
//
// version | idea                                                               | state
// 1       | library products; bias, GELU and LN fused per row, a block each     | replaced: 16 blocks, a division each
// 2       | pieces of rows, 16-byte accesses, column sums in 8-column blocks    | in use: bound by reading the weights
// Version 2, bf16, 50 x 50 cells: modelled 65 / 87 % of what reading the weights takes (29.7 / 62.0 us, H200 / RTX
// 5090; 30.3 / 62.0 before GELU was short); asked are 75 %, 25.7 us. On the H200 the three products' bytes alone take
// 19.5 us and seven launches 5.3: 0.9 us are left for four passes, each of which waits at least 0.55 us (a block's
// start and one load), so seven launches cannot reach it. They take 4.9 us, the two activations 1.9 us of issue slots
// each: every block of a row activates all of it for its moments. A cluster of eight blocks a row that exchange their
// moments would leave 0.6 us of each: 27.3 us, 71 %. Only products of our own with the passes in them (three launches)
// go beyond; modelled with one wait for each of their loads they take what they save, so they wait for a card to
// decide.
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/embedding_mapper/kernel.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

dim3 pieces(const SurfaceArguments<float>& a, std::int64_t piece) {
  const simt::Index3 blocks = kernels::row_pieces(a.rows, a.width, piece);
  return {blocks.x, blocks.y, blocks.z};
}

}  // namespace

void launch_surface(const SurfaceArguments<float>& a, kernels::Stream stream) {
  simt::launch(Surface{}, pieces(a, kernels::kCopyPiece), kernels::kPieceThreads, 0, stream, a);
}

void launch_surface_backward(const SurfaceArguments<float>& a, kernels::Stream stream) {
  simt::launch(SurfaceBackward{}, pieces(a, kSurfacePiece), kSurfaceThreads, 0, stream, a);
  simt::launch(SurfaceColumns{}, simt::grid(kernels::blocks_of(a.width, kernels::kSumColumns)), kernels::kSumThreads, 0,
               stream, a);
}

}  // namespace twinbench::energy_flow::embedding_mapper
