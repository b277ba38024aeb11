// Launches the simple neuron's kernels.
//
// version | idea                                                       | state
// 1       | weights in shared memory, four flows a warp, all layers    | in use: one launch, no intermediate in global memory
#include <algorithm>

#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/simple_neuron/backward_kernel.h"

namespace twinbench::energy_flow::simple_neuron {

namespace {

// Enough blocks to fill either chip several times over; more would only load the weights more often.
constexpr std::int64_t kMostForwardBlocks = 2048;
constexpr std::int64_t kMostBackwardBlocks = 256;

}  // namespace

std::int64_t simple_neuron_backward_blocks(std::int64_t flows) { return std::min(neuron_groups(flows), kMostBackwardBlocks); }
std::int64_t simple_neuron_forward_shared(const SimpleNeuronLayout& layout) { return neuron_forward_shared_bytes(layout); }
std::int64_t simple_neuron_backward_shared(const SimpleNeuronLayout& layout) { return neuron_backward_shared_bytes(layout); }

void launch_simple_neuron_forward(const SimpleNeuronArguments& a, Stream stream) {
  const auto blocks = static_cast<unsigned>(std::min(neuron_groups(a.flows), kMostForwardBlocks));
  simt::launch(SimpleNeuronForward{}, blocks, kNeuronThreads, neuron_forward_shared_bytes(a.layout), stream, a);
}

void launch_simple_neuron_backward(const SimpleNeuronArguments& a, Stream stream) {
  const std::int64_t blocks = simple_neuron_backward_blocks(a.flows);
  simt::launch(SimpleNeuronBackward{}, static_cast<unsigned>(blocks), kNeuronThreads,
               neuron_backward_shared_bytes(a.layout), stream, a);
  const auto sum_blocks = static_cast<unsigned>((a.layout.total() + kNeuronThreads - 1) / kNeuronThreads);
  simt::launch(SimpleNeuronSum{}, sum_blocks, kNeuronThreads, 0, stream, a, blocks);
}

}  // namespace twinbench::energy_flow::simple_neuron
