// Launches the flow step's kernels.
//
// version | idea                                                                             | state
// 1       | a thread a flow, rows of three through shared memory; a warp counts what it meets, | in use: one launch
//         | the last block hands the counts over
// Predicted for 20,000 flows: 0.98 MB moved, 0.2 us of an H200's bandwidth and 0.6 of an RTX 5090's; the launch, three
// dependent loads (sample, whether it stopped, its position) and the handover's atomics cost more than the bytes.
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/flow_movement/kernel.h"

namespace twinbench::energy_flow::flow_movement {

void launch_forward(const ForwardArguments<float>& a, kernels::Stream stream) {
  const std::int64_t blocks = kernels::striding_blocks(a.flows, kThreads, kMostBlocks);
  simt::launch(Move{}, simt::grid(blocks), kThreads, 0, stream, a);
}

void launch_backward(const BackwardArguments<float>& a, kernels::Stream stream) {
  const std::int64_t blocks = kernels::striding_blocks(a.flows, kThreads, kMostBlocks);
  simt::launch(MoveBack{}, simt::grid(blocks), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::flow_movement
