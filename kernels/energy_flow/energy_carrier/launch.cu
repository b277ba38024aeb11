// Launches the energy carrier's kernels.
//
// version | idea                                                        | state
// 1       | guard pass, library products, one pointwise kernel a layer  | in use: fp32, tf32, backward
// 2       | 16-byte accesses in the guard's passes, input padded to 80  | in use: rows of whole sectors, in bf16 too
// 3       | bf16: mma tiles, gates in the epilogue                      | replaced: one tile of 128x64, three k slices
// 4       | three tiles, four k slices, bf16 states in whole sectors    | replaced: the epilogue waits load by load
// 5       | a tile's states are loaded before its gates; a guard pass   | replaced: 75 instructions a channel's gates
//         | of its own for rows of four                                 |
// 6       | gates by powers of two and reciprocals (short_math.h); a    | in use: set-up picks the fastest
//         | layer guards the state of the one above                     |
// Version 4, modelled, H200 / RTX 5090: 256 flows of width 512 69.6 / 58.0 -> 10.2 / 11.1 us, predicted 10; 5,000 flows
// 38 / 74 % of the GEMM ceiling.
// Version 5, predicted for 5,000 flows: 12 to 28 instead of 1.5 loads in flight, so that mma.sync's own rate limits
// both layers, 60 / 75 %; modelled 54.4 / 75.4 % (57.6 / 145.6 us), issue slots, then mma.sync's rate, 0.82 of the
// library's (only warp-group instructions go beyond), and 10.2 us of the guard's pass.
// Version 6, predicted: 13 instead of 75 instructions for a channel's gates, so that tensor cores limit both layers (41
// us with their tails), and half the guard's pass: 65 %. Modelled 63.1 / 80.9 % (49.7 / 135.6 us); asked are 65 %, 48.2
// us. What is left: 41.0 us at mma.sync's rate (31.3 at the library's), three launches 2.3 us, and 5.4 us of guarding
// the first layer's state, which moves 17.6 MB (4.1 us): no order of this work comes below 47.4 us. Machine code: no
// spills; 94, 236 and 254 registers. That guard in the first layer's own loop, by the model's terms: 4.5 us less in the
// pass, but every channel tile reads the states in fp32, 18.0 us of L2 beside 15.3 of tensor cores, and waits for them
// 16 times in two rounds of blocks, 11.8 us more, as a stage in shared memory has no room on an RTX 5090: 26 us
// instead of 17 for that layer, so it was not built. Tiles of 160 flows suit the H200, of 128 the RTX 5090.
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/energy_carrier/fused_kernel.h"
#include "kernels/energy_flow/energy_carrier/kernel.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

constexpr int kThreads = 256;

dim3 warp_a_flow(const Shape& shape) { return simt::grid(kernels::warp_blocks(shape.flows, kFlowThreads)); }
dim3 thread_a_channel(const Shape& shape) {
  return simt::grid(shape.flows * kernels::blocks_of(shape.width, kThreads));
}

}  // namespace

void launch_guard(const GuardArguments& a, Stream stream) {
  if (takes_four(a))
    simt::launch(Guard{}, warp_a_flow(a.shape), kFlowThreads, 0, stream, a);
  else
    simt::launch(GuardAnyWidth{}, warp_a_flow(a.shape), kFlowThreads, 0, stream, a);
}

void launch_gates(const GatesArguments& a, Stream stream) {
  simt::launch(Gates{}, thread_a_channel(a.shape), kThreads, 0, stream, a);
}

void launch_fused_gates(FusedTile tile, const FusedGatesArguments& a, Stream stream) {
  const dim3 tiles(static_cast<unsigned>(kernels::blocks_of(a.shape.width, channels_of(tile))),
                   static_cast<unsigned>(kernels::blocks_of(a.shape.flows, flows_of(tile))));
  if (tile == FusedTile::kSmall)
    simt::launch(FusedGatesSmall{}, tiles, kSmallThreads, FusedGatesSmall::documented_shared_bytes(), stream, a);
  else if (tile == FusedTile::kLarge)
    simt::launch(FusedGatesLarge{}, tiles, kLargeThreads, FusedGatesLarge::documented_shared_bytes(), stream, a);
  else
    simt::launch(FusedGatesTall{}, tiles, kTallThreads, FusedGatesTall::documented_shared_bytes(), stream, a);
}

void launch_gates_backward(const GatesBackwardArguments& a, Stream stream) {
  simt::launch(GatesBackward{}, thread_a_channel(a.shape), kThreads, 0, stream, a);
}

void launch_mask(const MaskArguments& a, Stream stream) {
  simt::launch(Mask{}, warp_a_flow(a.shape), kFlowThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::energy_carrier
