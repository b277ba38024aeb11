// Launches the simple neuron's kernels.
//
// version | idea                                                       | state
// 1       | weights in shared memory, four flows a warp, all layers    | replaced: 32-way bank conflict, 4 of 32 lanes
// 2       | odd rows for the transposes, which read shared memory; the | in use: intermediates stay on the chip
//         | input gradient in all lanes; 10 shuffles for four sums     |
//         | a lane a number of the state: two loads instead of four    |
// 3       | 4,096 flows and more: a thread a flow, sums in registers   | in use: fp32
// 4       | bf16: tensor-core tiles of 16 flows, layers in registers   | replaced: a fitted GELU that parity refuses
// 5       | the same with the exact GELU                               | replaced: 25 instructions a GELU
// 6       | GELU within 1.3e-6, parameters in bf16 laid out at set-up  | in use: 4,096 flows and more
// Version 2: predicted 3,072 -> 96 wavefronts a block where the backward pass transposes, 32 instead of 4 active lanes
// in its input gradient. Machine code: four sums take 6 butterflies and 4 broadcasts instead of 20 butterflies. Version
// 4: predicted for 40,000 flows, H200 / RTX 5090 modelled: 1,250 instructions of a warp for 32 flows, half of them in
// 64 activations of eight; 2.2 / 2.8 us, 2.0 / 1.5 times the floor, instead of 8.9 / 4.8 us. Modelled 2.5 / 3.0 us, 2.2
// / 1.7 times: every warp's share of staging the weights is another 200 instructions. Version 5: parity at 4,099 flows
// showed what kernel tests had not: a GELU that is 2.6e-5 off turns roundings that honest arithmetic has settled, ten
// times the error allowed. Modelled 4.0 / 3.0 us, 3.5 / 1.7 times the floor; asked are 2. On the H200 issue slots limit
// it, 25 instead of 8 instructions a GELU.
// Version 6, predicted: 9 instructions a GELU, staging 50 instead of 200 instructions of a warp, 2.5 us on the H200.
// Modelled 2.6 / 3.0 us, 2.3 / 1.7 times the floor. Twice the floor, 2.24 us, leaves 1.49 us beside the launch, 1,250
// instructions a warp; it takes 1,530: 704 for the activations, 192 for means and deviations, 82 that set sums to their
// bias. Next: the first layer uses 4 of the 16 places of its inner axis: centred weights in three parts of bf16 would
// give its deviations without means, about 140 instructions less, 2.15 times; the rest needs another activation.
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/simple_neuron/backward_kernel.h"
#include "kernels/energy_flow/simple_neuron/many_kernel.h"
#include "kernels/energy_flow/simple_neuron/tile_kernel.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

bool are_many(const Arguments<float>& a) {
  const auto contiguous = [](const kernels::StridedRows<float>& rows, std::int64_t columns) {
    return rows.row_stride == columns && (rows.column_stride == 1 || columns == 1);
  };
  return a.flows >= kManyFlows && a.layout.hidden == kManyHidden && a.layout.outputs == kManyOutputs &&
         contiguous(a.position, 3) && contiguous(a.energy, 1);
}

bool start_aligned(const Arguments<float>& a) {
  const auto aligned = [](const float* start) { return reinterpret_cast<std::uintptr_t>(start) % 16 == 0; };
  return aligned(a.position.data) && aligned(a.energy.data);
}

}  // namespace

void launch_forward(const Arguments<float>& a, kernels::Stream stream) {
  if (are_many(a) && a.tile_pack && start_aligned(a))
    return simt::launch(ForwardTiles{}, simt::grid(tile_blocks(a.flows)), kTileThreads, tile_shared_bytes(), stream, a);
  if (are_many(a) && !a.round)
    return simt::launch(ForwardMany{}, simt::grid(many_blocks(a.flows)), kThreads, many_shared_bytes(), stream, a);
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
