// Launches the embedding mapper's own kernels.
//
// version | idea                                                               | state
// 1       | library products; bias, GELU and LN fused per row, a block each     | in use: bound by reading the weights
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/embedding_mapper/kernel.h"

namespace twinbench::energy_flow::embedding_mapper {

void launch_surface(const SurfaceArguments<float>& a, kernels::Stream stream) {
  simt::launch(Surface{}, simt::grid(kernels::striding_blocks(a.rows * a.width, kElementThreads)), kElementThreads, 0,
               stream, a);
}

void launch_surface_backward(const SurfaceArguments<float>& a, kernels::Stream stream) {
  simt::launch(SurfaceBackward{}, simt::grid(a.rows), kRowThreads, 0, stream, a);
  simt::launch(SurfaceColumns{}, simt::grid(kernels::blocks_of(a.width, kernels::kSumThreads)), kernels::kSumThreads, 0,
               stream, a);
}

}  // namespace twinbench::energy_flow::embedding_mapper
