// Launches spawn admission's kernels.
//
// version | idea                                                                      | state
// 1       | every block of a sample scans all its requests; a thread a slot writes it | in use: one launch
// A child's hidden state is not moved: its carrier reads it in the parent's slot, which `parent` names.
// Modelled for 16 samples of 312 slots: 1.9 / 1.6 us (H200 / RTX 5090), of 2,500 slots 3.6 / 2.0 us: the launch, then
// loads, a scan, barriers and a gather, each waiting for the one before; the bytes would take 0.1 / 0.2 us.
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/spawn_admission/kernel.h"

namespace twinbench::energy_flow::spawn_admission {
namespace {

dim3 grid_of(const Extents& extents) {
  const simt::Index3 blocks = kernels::row_pieces(extents.samples, extents.slots, kThreads);
  return {blocks.x, blocks.y, blocks.z};
}

}  // namespace

void launch_forward(const ForwardArguments<float>& a, kernels::Stream stream) {
  if (a.extents.samples > 0) simt::launch(Admit{}, grid_of(a.extents), kThreads, 0, stream, a);
}

void launch_backward(const BackwardArguments<float>& a, kernels::Stream stream) {
  if (a.extents.samples > 0) simt::launch(AdmitBack{}, grid_of(a.extents), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::spawn_admission
