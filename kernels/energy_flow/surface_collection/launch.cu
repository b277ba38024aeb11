// Launches energy_flow.surface_collection's kernels.
//
// version | idea                                                              | state
// 1       | a block a few of a sample's cells, two for every multiprocessor   | replaced: each read all of the entries
// 2       | a block a sample: maxima, then exact integer sums in shared       | in use: bound by launch and issue
//         | memory; any order of the atomics gives the same bits              |
// passes  | a thread a flow, the cells' words in device memory, four launches | ablation `atomic_maximum`
// Modelled for the experiment (16 samples of 312 slots): version 2 takes 2.6 / 2.2 us (H200 / RTX 5090), of which the
// launch is a third, the passes 4.9 / 3.8 us; 64 samples of 80 x 80 cells 2.7 / 2.3 us, 40,000 flows 3.9 / 3.1 us.
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/surface_collection/passes_kernel.h"

namespace twinbench::energy_flow::surface_collection {

void launch(const Arguments& a, kernels::Stream stream) {
  if (a.batch == 0) return;
  const dim3 grid = simt::grid(std::int64_t{a.batch} * blocks_of_sample(a.cells()));
  const std::int64_t shared = std::int64_t{kBytesOfCell} * cells_of_block(a.cells());
  if (a.grad_surface != nullptr)
    simt::launch(CollectBackward{}, grid, kThreads, shared, stream, a);
  else
    simt::launch(Collect{}, grid, kThreads, shared, stream, a);
}

void launch_in_passes(const Arguments& a, kernels::Stream stream) {
  const dim3 of_cells = simt::grid(kernels::striding_blocks(std::int64_t{a.batch} * a.cells(), kPassThreads));
  const dim3 of_flows = simt::grid(kernels::striding_blocks(std::int64_t{a.batch} * a.slots, kPassThreads));
  simt::launch(ClearCells{}, of_cells, kPassThreads, 0, stream, a);
  simt::launch(CellMaxima{}, of_flows, kPassThreads, 0, stream, a);
  simt::launch(CellSums{}, of_flows, kPassThreads, 0, stream, a);
  if (a.grad_surface != nullptr)
    simt::launch(EnergyGradients{}, of_flows, kPassThreads, 0, stream, a);
  else
    simt::launch(CellMeans{}, of_cells, kPassThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::surface_collection
