// Launches the carrier heads' kernels.
//
// version | idea                                                   | state
// 1       | one product for all first layers, one warp a flow      | replaced: one lane finished, one load in flight
// 2       | four flows a warp, a lane a flow for the scalar rules  | replaced: 4-byte loads of one row after the other
// 3       | four columns a lane, eight loads in flight; backward a | in use: two launches a step; the backward pass
//         | thread a vector of columns, with every sum over flows  | reads and writes each first-layer sum once
// 4       | GELU and its slope by one power of two (short_math.h); | in use
//         | rounding in pairs                                      |
// Version 3: predicted for 40,000 flows, against version 2: forward 51 MB instead of 102 (no activations are kept),
// backward 102 MB instead of 205 (bias sums and second layers' weight gradients come from the same pass), four launches
// fewer.
// Version 3, modelled for 40,000 flows: 46 / 91 % of copy bandwidth (H200 / RTX 5090), the backward pass of 20,000 in
// bf16 50 / 90 %; asked are 85 %. Issue slots were missing: 46 instructions an activation.
// Version 4, predicted: GELU 14 instead of 25 instructions, rounding 2 instead of 9, so about 28 in all and 75 %.
// Modelled 71 / 91 % and 75 / 89 %: issue slots (14.2 us) are near the bandwidth (12.7 us) now; what is left on the
// H200 is waiting, 6.2 us that the model adds in part: a warp waits 13 times, at 16 warps a multiprocessor, and
// shuffles 75 times. For 85 % it may wait 2.5 us. Next: keys, position and rows in one flight (15 loads), half a warp
// for two flows (80 vectors of a row fill 5 steps of 16 lanes, but 2.5 of 32: a sixth of the instructions), at 85
// registers three blocks.
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/carrier_heads/backward_kernel.h"

namespace twinbench::energy_flow::carrier_heads {
void launch_forward(const ForwardArguments<float>& a, kernels::Stream stream) {
  const dim3 grid = simt::grid(forward_blocks(a.flows));
  const std::int64_t shared = forward_shared_bytes(a.columns, a.rule.gate);
  if (columns_at_once(a.columns) == 4 && shared <= simt::kMaxSharedBytes / 2)
    simt::launch(Forward{}, grid, kThreads, shared, stream, a);
  else
    simt::launch(ForwardAnyWidth{}, grid, kThreads, 0, stream, a);
}

void launch_backward(const BackwardArguments<float>& a, kernels::Stream stream) {
  const dim3 grid(simt::grid(a.plan.blocks).x, static_cast<unsigned>(a.plan.chunks));
  const int width = columns_at_once(a.columns);
  const std::int64_t shared = backward_shared_bytes(width);
  if (width == 4)
    simt::launch(Backward{}, grid, kThreads, shared, stream, a);
  else
    simt::launch(BackwardAnyWidth{}, grid, kThreads, shared, stream, a);
  kernels::launch_column_sums({.rows = a.partial,
                               .sums = a.flow_sums,
                               .count = a.plan.blocks,
                               .columns = a.plan.sums(),
                               .stride = a.plan.stride()},
                              stream);
}

}  // namespace twinbench::energy_flow::carrier_heads
