// Launches the placement's kernels.
//
// version | idea                                                | state
// 1       | a thread a flow, positions element by element       | in use: one launch, nothing read but the surface
// Predicted for 19,968 flows: 0.72 MB moved, 0.2 us of an H200's bandwidth and 0.5 of an RTX 5090's; so a launch.
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/flow_placement/kernel.h"

namespace twinbench::energy_flow::flow_placement {
namespace {

dim3 grid_of(std::int64_t along, std::int64_t samples) {
  const simt::Index3 blocks = kernels::row_pieces(samples, along, kThreads);
  return {blocks.x, blocks.y, blocks.z};
}

}  // namespace

void launch_forward(const ForwardArguments<float>& a, kernels::Stream stream) {
  if (a.lattice.samples > 0)
    simt::launch(Place{}, grid_of(a.lattice.placed, a.lattice.samples), kThreads, 0, stream, a);
}

void launch_backward(const BackwardArguments<float>& a, kernels::Stream stream) {
  if (a.lattice.samples > 0)
    simt::launch(PlaceBack{}, grid_of(a.lattice.cells(), a.lattice.samples), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::flow_placement
