// Launches the embedding mapper's kernels.
//
// version | idea                                                               | state
// 1       | library products; bias, GELU and LN fused per row, a block each     | in use: bound by reading the weights
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/embedding_mapper/kernel.h"

namespace twinbench::energy_flow::embedding_mapper {

void launch_gather(const GatherArguments& a, Stream stream) {
  simt::launch(Gather{}, static_cast<unsigned>(gather_blocks(a.rows * a.columns)), kElementThreads, 0, stream, a);
}

void launch_activation(const ActivationArguments& a, Stream stream) {
  simt::launch(Activation{}, static_cast<unsigned>(a.rows), kRowThreads, 0, stream, a);
}

void launch_activation_backward(const ActivationBackwardArguments& a, Stream stream) {
  simt::launch(ActivationBackward{}, static_cast<unsigned>(a.rows), kRowThreads, 0, stream, a);
  simt::launch(ActivationColumns{}, static_cast<unsigned>(column_blocks(a.width)), kElementThreads, 0, stream, a);
}

void launch_surface(const SurfaceArguments& a, Stream stream) {
  simt::launch(Surface{}, static_cast<unsigned>(gather_blocks(a.rows * a.width)), kElementThreads, 0, stream, a);
}

void launch_surface_backward(const SurfaceBackwardArguments& a, Stream stream) {
  simt::launch(SurfaceBackward{}, static_cast<unsigned>(a.rows), kRowThreads, 0, stream, a);
  simt::launch(SurfaceColumns{}, static_cast<unsigned>(column_blocks(a.width)), kElementThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::embedding_mapper
