// Launches the embedding mapper's own kernels.
//
// version | idea                                                               | state
// 1       | library products; bias, GELU and LN fused per row, a block each     | replaced: 16 blocks, a division each
// 2       | pieces of rows, 16-byte accesses, column sums in 8-column blocks    | in use: bound by reading the weights
// Version 2, bf16, 50 x 50 cells: modelled 64 / 86 % of what reading the weights takes (30.3 / 62.0 us, H200 / RTX
// 5090); asked are 75 %. Of the 11.0 us beyond it on the H200 5.3 are seven launches; the passes between the products
// are 5.6 us more, most of it instructions of few warps. Only products of our own with these passes in them (three
// launches) would save that; modelled with one wait for each of their loads they take what they save, so they wait for
// a card to decide.
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
