// Launches the whole forward's kernels.
//
// version | idea                                                                             | state
// 1       | every grid for as many flows as there can be, the count read on the device;  | in use: 6 + layers
//         | states in rows without gaps, written where the next step reads them        | launches a step
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/flow_forward/kernel.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

namespace layer = output_collector;

bool starts_aligned(const layer::LayerArguments& a) {
  const auto aligned = [&](const void* where, std::uintptr_t bytes) {
    return a.inner % 4 == 0 && reinterpret_cast<std::uintptr_t>(where) % bytes == 0;
  };
  return a.weight != nullptr ? aligned(a.weight, 16) : aligned(a.weight_bf16, 8);
}
dim3 pieces(const layer::LayerArguments& a) {
  return {static_cast<unsigned>(layer::pieces_of(a.columns)),
          static_cast<unsigned>(kernels::blocks_of(a.rows, layer::kRows))};
}

dim3 tiles(const TileArguments& a, int of_columns) {
  return simt::grid(kernels::blocks_of(a.rows, kTileFlows) * of_columns);
}

}  // namespace

void launch_mapper_layer(const layer::LayerArguments& a, kernels::Stream stream) {
  const bool aligned = starts_aligned(a), bfloat = a.weight == nullptr;
  if (bfloat && aligned)
    simt::launch(MapperLayerBfloat{}, pieces(a), layer::kLayerThreads, layer::kStagedBytes, stream, a);
  else if (bfloat)
    simt::launch(MapperLayerBfloatAnyWidth{}, pieces(a), layer::kLayerThreads, layer::kStagedBytes, stream, a);
  else if (aligned)
    simt::launch(MapperLayer{}, pieces(a), layer::kLayerThreads, layer::kStagedBytes, stream, a);
  else
    simt::launch(MapperLayerAnyWidth{}, pieces(a), layer::kLayerThreads, layer::kStagedBytes, stream, a);
}

void launch_mapper_surface(const layer::LayerArguments& a, kernels::Stream stream) {
  const bool aligned = starts_aligned(a), bfloat = a.weight == nullptr;
  if (bfloat && aligned)
    simt::launch(MapperSurfaceBfloat{}, pieces(a), layer::kLayerThreads, layer::kStagedBytes, stream, a);
  else if (bfloat)
    simt::launch(MapperSurfaceBfloatAnyWidth{}, pieces(a), layer::kLayerThreads, layer::kStagedBytes, stream, a);
  else if (aligned)
    simt::launch(MapperSurface{}, pieces(a), layer::kLayerThreads, layer::kStagedBytes, stream, a);
  else
    simt::launch(MapperSurfaceAnyWidth{}, pieces(a), layer::kLayerThreads, layer::kStagedBytes, stream, a);
}

void launch_place(const Arguments& a, kernels::Stream stream) {
  if (a.slots.samples == 0) return;
  const simt::Index3 blocks = kernels::row_pieces(a.slots.samples, a.placed > 0 ? a.placed : 1, kSampleThreads);
  const dim3 grid(blocks.x, blocks.y);
  simt::launch(PlaceFlows{}, grid, kSampleThreads, 0, stream, a);
}

void launch_look(const Arguments& a, kernels::Stream stream) {
  if (a.slots.samples > 0) simt::launch(LookAtSamples{}, simt::grid(1), kSampleThreads, 0, stream, a);
}

void launch_list(const Arguments& a, kernels::Stream stream) {
  simt::launch(ListFlows{}, simt::grid(a.slots.samples), kSampleThreads, 0, stream, a);
}

void launch_neuron(const Arguments& a, kernels::Stream stream) {
  const dim3 grid = simt::grid(simple_neuron::forward_blocks(a.rows_at_most()));
  const std::int64_t shared = simple_neuron::forward_shared_bytes(a.neuron);
  if (a.round)
    simt::launch(NeuronRowsBfloat{}, grid, simple_neuron::kNeuronThreads, shared, stream, a);
  else
    simt::launch(NeuronRows{}, grid, simple_neuron::kNeuronThreads, shared, stream, a);
}

void launch_recurrent(const TileArguments& a, kernels::Stream stream) {
  const auto start = [&](auto kernel) {
    simt::launch(kernel, tiles(a, channel_tiles(a)), kTileThreads, kTileBytes, stream, a);
  };
  if (a.tf32)
    a.stores ? start(StoredRecurrentTilesTf32{}) : start(RecurrentTilesTf32{});
  else
    a.stores ? start(StoredRecurrentTiles{}) : start(RecurrentTiles{});
}

void launch_head_products(const TileArguments& a, kernels::Stream stream) {
  const auto start = [&](auto kernel) {
    simt::launch(kernel, tiles(a, column_tiles(a)), kTileThreads, kTileBytes, stream, a);
  };
  if (a.tf32)
    start(HeadTilesTf32{});
  else
    a.round ? start(HeadTilesBfloat{}) : start(HeadTiles{});
}

void launch_finish(const Arguments& a, kernels::Stream stream) {
  const dim3 grid = simt::grid(carrier_heads::forward_blocks(a.rows_at_most()));
  const std::int64_t shared = carrier_heads::forward_shared_bytes(a.heads.columns, a.heads.rule.gate);
  if (carrier_heads::columns_at_once(a.heads.columns) == 4 && shared <= simt::kMaxSharedBytes / 2)
    simt::launch(Finish{}, grid, carrier_heads::kHeadThreads, shared, stream, a);
  else
    simt::launch(FinishAnyWidth{}, grid, carrier_heads::kHeadThreads, 0, stream, a);
}

void launch_settle(const Arguments& a, kernels::Stream stream) {
  simt::launch(SettleSamples{}, simt::grid(a.slots.samples), kSampleThreads, 0, stream, a);
}

void launch_collect(const Arguments& a, kernels::Stream stream) {
  namespace rule = surface_collection;
  simt::launch(CollectSurfaces{}, simt::grid(a.slots.samples * rule::blocks_of_sample(a.cells())),
               rule::kCollectThreads, std::int64_t{rule::kBytesOfCell} * rule::cells_of_block(a.cells()), stream, a);
}

}  // namespace twinbench::energy_flow::flow_forward
