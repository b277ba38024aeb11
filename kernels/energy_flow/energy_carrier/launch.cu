// Launches the energy carrier's kernels.
//
// version | idea                                                        | state
// 1       | guard pass, library products, one pointwise kernel a layer  | in use: fp32, backward, widths not of eight
// 2       | 16-byte accesses in the guard's passes, input padded to 72  | in use: four loads in flight instead of one
// 3       | bf16: mma tiles, gates in the epilogue, three k slices       | in use where fuses_gates: sums stay on chip
#include "kernels/common/simt_device.h"
// Version 3: predicted 372 -> about 60 MB at 5,000 flows of width 512. Machine code, a slice of 32 along k: 48 HMMA,
// 16 LDSM.x4, 5 LDGSTS.128, one barrier; 246 / 174 registers on sm_90 / sm_120, no spills, one block a multiprocessor.
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
  simt::launch(Guard{}, warp_a_flow(a.shape), kFlowThreads, 0, stream, a);
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
