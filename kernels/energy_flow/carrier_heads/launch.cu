// Launches the carrier heads' kernels.
//
// version | idea                                                   | state
// 1       | one product for all first layers, one warp a flow after | replaced: one lane finished, one load in flight
// 2       | four flows a warp, a lane a flow for the scalar rules   | in use: two launches a step
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/carrier_heads/kernel.h"

namespace twinbench::energy_flow::carrier_heads {
void launch_forward(const ForwardArguments<float>& a, kernels::Stream stream) {
  simt::launch(Forward{}, simt::grid(kernels::blocks_of(a.flows, kFlowsPerBlock)), kThreads, 0, stream, a);
}

void launch_backward(const BackwardArguments<float>& a, kernels::Stream stream) {
  simt::launch(Backward{}, simt::grid(kernels::blocks_of(a.flows, kFlowsPerBlock)), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::carrier_heads
