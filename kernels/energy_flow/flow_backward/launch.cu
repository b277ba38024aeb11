// Launches the whole backward pass's own kernels.
//
// version | idea                                                                            | state
// 1       | the forward's steps leave states on a tape; back, neuron, gates and heads'      | in use: 12 + 5 layers
//         | sums are computed again; gradients of matrices in pieces, added step by step    | launches a step in all
// Next: gradients of gates in the epilogue of what computes them again (a launch and 10 values of a channel less a
// layer), matrices of several steps in one launch where few flows are live, tensor cores.
#include <algorithm>

#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/flow_backward/heads_kernel.h"
#include "kernels/energy_flow/flow_backward/kernel.h"
#include "kernels/energy_flow/flow_backward/layer_kernel.h"
#include "kernels/energy_flow/flow_backward/matrix_kernel.h"
#include "kernels/energy_flow/flow_backward/neuron_kernel.h"
#include "kernels/energy_flow/flow_backward/repeat_kernel.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

dim3 tiles(std::int64_t rows, int of_columns) {
  return simt::grid(kernels::blocks_of(rows, flow_forward::kTileFlows) * of_columns);
}

dim3 threads_of_rows(std::int64_t rows) { return simt::grid(kernels::striding_blocks(rows, kernels::kElementThreads)); }

}  // namespace

void launch_finish_taped(const TapedArguments& a, kernels::Stream stream) {
  const flow_forward::HeadsArguments& heads = a.forward.heads;
  const dim3 grid = simt::grid(carrier_heads::forward_blocks(a.forward.slots.all()));
  const std::int64_t shared = carrier_heads::forward_shared_bytes(heads.columns, heads.rule.gate);
  if (carrier_heads::columns_at_once(heads.columns) == 4 && shared <= simt::kMaxSharedBytes / 2)
    simt::launch(FinishTaped{}, grid, carrier_heads::kHeadThreads, shared, stream, a);
  else
    simt::launch(FinishTapedAnyWidth{}, grid, carrier_heads::kHeadThreads, 0, stream, a);
}

void launch_settle_taped(const TapedArguments& a, kernels::Stream stream) {
  simt::launch(SettleTaped{}, simt::grid(a.forward.slots.samples), flow_forward::kSampleThreads, 0, stream, a);
}

void launch_keep_start(const StartArguments& a, kernels::Stream stream) {
  simt::launch(KeepStart{}, threads_of_rows(a.slots), kernels::kElementThreads, 0, stream, a);
}

void launch_take_start(const StartArguments& a, kernels::Stream stream) {
  simt::launch(TakeStart{}, threads_of_rows(a.slots), kernels::kElementThreads, 0, stream, a);
}

void launch_bear_again(const BearArguments& a, kernels::Stream stream) {
  simt::launch(BearAgain{}, threads_of_rows(a.slots), kernels::kElementThreads, 0, stream, a);
}

void launch_gates(const GatesArguments& a, kernels::Stream stream) {
  const auto start = [&](auto kernel) {
    simt::launch(kernel, tiles(a.tile.rows, flow_forward::channel_tiles(a.tile)), flow_forward::kTileThreads,
                 flow_forward::kTileBytes, stream, a);
  };
  if (a.tile.tf32)
    a.tile.stores ? start(StoredGatesTapedTf32{}) : start(GatesTapedTf32{});
  else
    a.tile.stores ? start(StoredGatesTaped{}) : start(GatesTaped{});
}

void launch_clear(const ClearArguments& a, kernels::Stream stream) {
  simt::launch(ClearAdjoints{}, simt::grid(kernels::striding_blocks(a.count / 4, kernels::kElementThreads)),
               kernels::kElementThreads, 0, stream, a);
}

void launch_uncollect(const UncollectArguments& a, kernels::Stream stream) {
  namespace rule = surface_collection;
  const int cells = a.forward.cells();
  simt::launch(UncollectSurfaces{}, simt::grid(a.forward.slots.samples * rule::blocks_of_sample(cells)),
               rule::kCollectThreads, std::int64_t{rule::kBytesOfCell} * rule::cells_of_block(cells), stream, a);
}

void launch_heads_back(const HeadsBackArguments& a, kernels::Stream stream) {
  const int width = carrier_heads::columns_at_once(a.columns);
  const std::int64_t vectors = kernels::blocks_of(a.layout.trained, width);
  const dim3 grid(simt::grid(column_blocks(a.steps.slots)).x,
                  static_cast<unsigned>(kernels::blocks_of(vectors, simt::kWarpSize)));
  const auto start = [&]<class Kernel>(Kernel kernel) {
    simt::launch(kernel, grid, kColumnThreads, Kernel::documented_shared_bytes(), stream, a);
  };
  if (width == 4)
    a.round ? start(RoundedHeadColumns{}) : start(HeadColumns{});
  else
    a.round ? start(RoundedHeadColumnsAnyWidth{}) : start(HeadColumnsAnyWidth{});
}

void launch_gates_back(const GatesBackArguments& a, kernels::Stream stream) {
  simt::launch(GatesBack{}, simt::grid(kernels::blocks_of(a.slots, rows_of_block(a.stride))), kGateThreads, 0, stream,
               a);
}

void launch_next_states(const NextStatesArguments& a, kernels::Stream stream) {
  const dim3 grid(simt::grid(kernels::blocks_of(a.slots, rows_of_block(a.stride))).x, static_cast<unsigned>(a.layers));
  simt::launch(NextStates{}, grid, kGateThreads, 0, stream, a);
}

void launch_products(const ProductsArguments& a, kernels::Stream stream) {
  int widest = 0;
  for (int i = 0; i < a.count; ++i) widest = std::max(widest, flow_forward::column_tiles(a.of[i].tile));
  const dim3 grid(tiles(a.of[0].tile.rows, widest).x, static_cast<unsigned>(a.count));
  const auto start = [&](auto kernel) {
    simt::launch(kernel, grid, flow_forward::kTileThreads, flow_forward::kTileBytes, stream, a);
  };
  a.of[0].tile.tf32 ? start(ProductsTf32{}) : start(Products{});
}

void launch_matrices(const MatricesArguments& a, kernels::Stream stream) {
  int most = 0;
  for (int i = 0; i < a.count; ++i) most = std::max(most, matrix_tiles(a.of[i].gradients, a.of[i].width));
  const dim3 grid(static_cast<unsigned>(most), static_cast<unsigned>(a.count), static_cast<unsigned>(a.pieces));
  const auto start = [&](auto kernel) {
    simt::launch(kernel, grid, kMatrixThreads, flow_forward::kTileBytes, stream, a);
  };
  const bool round = a.of[0].round || (a.count > 1 && a.of[1].round);
  if (a.tf32) return start(MatricesTf32{});  // whose operands are no bf16
  round ? start(RoundedMatrices{}) : start(Matrices{});
}

void launch_neuron_back(const NeuronBackArguments& a, kernels::Stream stream) {
  simt::launch(NeuronBack{}, simt::grid(simple_neuron::backward_blocks(a.steps.slots)), simple_neuron::kNeuronThreads,
               simple_neuron::backward_shared_bytes(a.layout), stream, a);
}

void launch_return(const ReturnArguments& a, kernels::Stream stream) {
  const simt::Index3 blocks = kernels::row_pieces(a.slots.samples, std::max(a.placed, 1), kernels::kElementThreads);
  const dim3 grid(blocks.x, blocks.y);
  simt::launch(ReturnEnergies{}, grid, kernels::kElementThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::flow_backward
