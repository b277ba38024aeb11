// Launches the carrier heads' kernels.
//
// version | idea                                                   | state
// 1       | one product for all first layers, one warp a flow after | in use: two launches a step
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/carrier_heads/kernel.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

constexpr int kThreads = 256;

}  // namespace

void launch_forward(const ForwardArguments<float>& a, kernels::Stream stream) {
  simt::launch(Forward{}, simt::grid(kernels::warp_blocks(a.flows, kThreads)), kThreads, 0, stream, a);
}

void launch_backward(const BackwardArguments<float>& a, kernels::Stream stream) {
  simt::launch(Backward{}, simt::grid(kernels::warp_blocks(a.flows, kThreads)), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::carrier_heads
