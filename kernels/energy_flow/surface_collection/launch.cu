// Launches energy_flow.surface_collection's kernels.
//
// version | idea                                                             | state
// 1       | a block a part of a sample's cells, maxima and exact integer sums | in use: bound by launch and load latency
//         | in shared memory; any order of atomics gives the same bits        |
// passes  | a thread a flow, the cells' words in device memory, four launches | ablation `atomic_maximum`
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/surface_collection/passes_kernel.h"

namespace twinbench::energy_flow::surface_collection {

void launch(const Arguments& a, kernels::Stream stream) {
  if (a.batch == 0) return;
  const int each = cells_of_block(a.batch, a.cells());
  const dim3 grid = simt::grid(std::int64_t{a.batch} * blocks_of_sample(a.cells(), each));
  const std::int64_t shared = std::int64_t{kBytesOfCell} * each;
  if (a.grad_surface != nullptr)
    simt::launch(CollectBackward{}, grid, kThreads, shared, stream, a);
  else
    simt::launch(Collect{}, grid, kThreads, shared, stream, a);
}

void launch_in_passes(const Arguments& a, kernels::Stream stream) {
  const dim3 of_cells = simt::grid(kernels::striding_blocks(std::int64_t{a.batch} * a.cells(), kThreads));
  const dim3 of_flows = simt::grid(kernels::striding_blocks(std::int64_t{a.batch} * a.slots, kThreads));
  simt::launch(ClearCells{}, of_cells, kThreads, 0, stream, a);
  simt::launch(CellMaxima{}, of_flows, kThreads, 0, stream, a);
  simt::launch(CellSums{}, of_flows, kThreads, 0, stream, a);
  if (a.grad_surface != nullptr)
    simt::launch(EnergyGradients{}, of_flows, kThreads, 0, stream, a);
  else
    simt::launch(CellMeans{}, of_cells, kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::surface_collection
