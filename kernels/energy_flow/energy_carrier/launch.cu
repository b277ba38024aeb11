// Launches the energy carrier's kernels.
//
// version | idea                                                        | state
// 1       | guard pass, library products, one pointwise kernel a layer  | in use: products dominate from 1,000 flows on
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/energy_carrier/kernel.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

constexpr int kThreads = 256;
constexpr int kFlowsPerBlock = kThreads / simt::kWarpSize;

dim3 warp_per_flow(std::int64_t flows) { return static_cast<unsigned>((flows + kFlowsPerBlock - 1) / kFlowsPerBlock); }
dim3 thread_per_channel(std::int64_t flows, std::int32_t width) {
  return static_cast<unsigned>(flows * blocks_per_flow(width, kThreads));
}

}  // namespace

void launch_carrier_guard(const CarrierGuardArguments& a, Stream stream) {
  simt::launch(CarrierGuard{}, warp_per_flow(a.flows), kThreads, 0, stream, a);
}

void launch_carrier_gates(const CarrierGateArguments& a, Stream stream) {
  simt::launch(CarrierGates{}, thread_per_channel(a.flows, a.width), kThreads, 0, stream, a);
}

void launch_carrier_gates_backward(const CarrierGateBackwardArguments& a, Stream stream) {
  simt::launch(CarrierGatesBackward{}, thread_per_channel(a.flows, a.width), kThreads, 0, stream, a);
}

void launch_column_sums(const ColumnSumArguments& a, Stream stream) {
  const unsigned blocks = static_cast<unsigned>((a.columns + simt::kWarpSize - 1) / simt::kWarpSize);
  simt::launch(ColumnSum{}, blocks, dim3(simt::kWarpSize, ColumnSum::kRowLanes), 0, stream, a);
}

void launch_carrier_mask(const CarrierMaskArguments& a, Stream stream) {
  simt::launch(CarrierMask{}, warp_per_flow(a.flows), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::energy_carrier
