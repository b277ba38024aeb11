// Launches the simple neuron's kernels.
//
// version | idea                                                       | state
// 1       | weights in shared memory, four flows a warp, all layers    | replaced: 32-way bank conflict, 4 of 32 lanes
// 2       | odd rows for the transposes, which read shared memory; the | in use: intermediates stay on the chip
//         | input gradient in all lanes; 10 shuffles for four sums     |
// Version 2: predicted 3,072 -> 96 wavefronts a block where the backward pass transposes, 32 instead of 4 active lanes
// in its input gradient. Machine code: four sums take 6 butterflies and 4 broadcasts instead of 20 butterflies.
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/simple_neuron/backward_kernel.h"
#include "kernels/energy_flow/simple_neuron/many_kernel.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

bool are_many(const Arguments<float>& a) {
  const auto contiguous = [](const kernels::StridedRows<float>& rows, std::int64_t columns) {
    return rows.row_stride == columns && (rows.column_stride == 1 || columns == 1);
  };
  return a.flows >= kManyFlows && a.layout.hidden == kManyHidden && a.layout.outputs == kManyOutputs &&
         contiguous(a.position, 3) && contiguous(a.energy, 1);
}

}  // namespace

void launch_forward(const Arguments<float>& a, kernels::Stream stream) {
  const dim3 many = simt::grid(many_blocks(a.flows));
  if (are_many(a) && a.round) return simt::launch(ForwardManyRounded{}, many, kThreads, many_shared_bytes(), stream, a);
  if (are_many(a)) return simt::launch(ForwardMany{}, many, kThreads, many_shared_bytes(), stream, a);
  simt::launch(Forward{}, simt::grid(forward_blocks(a.flows)), kThreads, forward_shared_bytes(a.layout), stream, a);
}

void launch_backward(const Arguments<float>& a, kernels::Stream stream) {
  const std::int64_t blocks = backward_blocks(a.flows);
  simt::launch(Backward{}, simt::grid(blocks), kThreads, backward_shared_bytes(a.layout), stream, a);
  kernels::launch_column_sums({.rows = a.partial,
                               .sums = a.grad_weights,
                               .count = blocks,
                               .columns = a.layout.total(),
                               .stride = a.layout.padded()},
                              stream);
}

}  // namespace twinbench::energy_flow::simple_neuron
