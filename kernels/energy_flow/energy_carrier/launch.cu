// Launches the energy carrier's kernels.
//
// version | idea                                                        | state
// 1       | guard pass, library products, one pointwise kernel a layer  | in use: products dominate from 1,000 flows on
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/energy_carrier/kernel.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

constexpr int kThreads = 256;

dim3 warp_a_flow(const Shape& shape) { return simt::grid(kernels::warp_blocks(shape.flows, kThreads)); }
dim3 thread_a_channel(const Shape& shape) {
  return simt::grid(shape.flows * kernels::blocks_of(shape.width, kThreads));
}

}  // namespace

void launch_guard(const GuardArguments& a, Stream stream) {
  simt::launch(Guard{}, warp_a_flow(a.shape), kThreads, 0, stream, a);
}

void launch_gates(const GatesArguments& a, Stream stream) {
  simt::launch(Gates{}, thread_a_channel(a.shape), kThreads, 0, stream, a);
}

void launch_gates_backward(const GatesBackwardArguments& a, Stream stream) {
  simt::launch(GatesBackward{}, thread_a_channel(a.shape), kThreads, 0, stream, a);
}

void launch_mask(const MaskArguments& a, Stream stream) {
  simt::launch(Mask{}, warp_a_flow(a.shape), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::energy_carrier
