// Launches the carrier heads' kernels.
//
// version | idea                                                   | state
// 1       | one product for all first layers, one warp a flow after | in use: two launches a step
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/carrier_heads/kernel.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

constexpr int kThreads = 256;
constexpr int kFlowsPerBlock = kThreads / simt::kWarpSize;
constexpr std::int64_t kMostRoundBlocks = 2048;  // grid-stride beyond: enough to fill any SM count

dim3 warp_per_flow(std::int64_t flows) { return static_cast<unsigned>((flows + kFlowsPerBlock - 1) / kFlowsPerBlock); }

}  // namespace

void launch_carrier_heads(const HeadsArguments& a, Stream stream) {
  simt::launch(FinishHeads{}, warp_per_flow(a.flows), kThreads, 0, stream, a);
}

void launch_carrier_heads_backward(const HeadsBackwardArguments& a, Stream stream) {
  simt::launch(DifferentiateHeads{}, warp_per_flow(a.flows), kThreads, 0, stream, a);
}

void launch_round_to_bf16(const RoundArguments& a, Stream stream) {
  const std::int64_t blocks = (a.count + kThreads - 1) / kThreads;
  simt::launch(RoundToBf16{}, static_cast<unsigned>(blocks < kMostRoundBlocks ? blocks : kMostRoundBlocks), kThreads, 0,
               stream, a);
}

}  // namespace twinbench::energy_flow::carrier_heads
