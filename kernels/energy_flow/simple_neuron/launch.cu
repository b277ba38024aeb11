// Launches the simple neuron's kernels.
//
// version | idea                                                       | state
// 1       | weights in shared memory, four flows a warp, all layers    | in use: intermediates stay on the chip
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/simple_neuron/backward_kernel.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

constexpr std::int64_t kMostForwardBlocks = 2048;  // fills either chip; more would only load the weights more often

}  // namespace

void launch_forward(const Arguments<float>& a, kernels::Stream stream) {
  simt::launch(Forward{}, simt::grid(kernels::striding_blocks(a.flows, kFlowsPerBlock, kMostForwardBlocks)), kThreads,
               forward_shared_bytes(a.layout), stream, a);
}

void launch_backward(const Arguments<float>& a, kernels::Stream stream) {
  const std::int64_t blocks = backward_blocks(a.flows);
  simt::launch(Backward{}, simt::grid(blocks), kThreads, backward_shared_bytes(a.layout), stream, a);
  kernels::launch_ordered_column_sums({.rows = a.partial,
                                       .sums = a.grad_weights,
                                       .count = blocks,
                                       .columns = a.layout.total(),
                                       .stride = a.layout.total()},
                                      stream);
}

}  // namespace twinbench::energy_flow::simple_neuron
