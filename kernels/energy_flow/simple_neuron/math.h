// Index maps and sizes of energy_flow.simple_neuron (C06), shared by host and device; its arithmetic is kernels/common
// (products, layer normalisation, GELU).
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/neuron_stage.h"

namespace twinbench::energy_flow::simple_neuron {

// ---- how the kernels divide their work ------------------------------------------------------------------------------

constexpr int kThreads = kNeuronThreads;
constexpr std::int64_t kMostBackwardBlocks = 256;  // fills either chip; more would only load the weights more often
// Blocks that share the sums of the weight gradients: a function of the flows alone, so that the sums are reproducible.
TWINBENCH_HOST_DEVICE std::int64_t backward_blocks(std::int64_t flows) {
  return groups_of(flows) < kMostBackwardBlocks ? groups_of(flows) : kMostBackwardBlocks;
}

// Dynamic shared memory of the backward kernel, in floats: packed weights, packed sums, the second and last matrix as
// [out][in] (so that lanes that own inputs read neighbours), then the stages of all warps. Rows of [out][in] have an
// odd length: 32 lanes that turn a row into a column then meet 32 banks.
struct BackwardShared {
  Layout layout;
  TWINBENCH_HOST_DEVICE int row() const { return layout.hidden | 1; }
  TWINBENCH_HOST_DEVICE int sums() const { return layout.padded(); }
  TWINBENCH_HOST_DEVICE int weight_1() const { return 2 * layout.padded(); }
  TWINBENCH_HOST_DEVICE int weight_out() const { return weight_1() + layout.hidden * row(); }
  TWINBENCH_HOST_DEVICE int stages() const { return (weight_out() + layout.outputs * row() + 3) / 4 * 4; }
};

// Dynamic shared memory in bytes; see forward_shared_bytes.
TWINBENCH_HOST_DEVICE std::int64_t backward_shared_bytes(const Layout& layout) {
  return std::int64_t{4} * BackwardShared{layout}.stages() +
         std::int64_t{16} * kWarps * Stage{layout.hidden, layout.outputs}.backward_rows();
}

// ---- many flows at the documents' widths ----------------------------------------------------------------------------

constexpr int kManyHidden = 32, kManyOutputs = 64;
constexpr std::int64_t kManyFlows = 4096;  // from here on; below them a warp for four flows spreads the work further
TWINBENCH_HOST_DEVICE Layout many_layout() { return {kManyHidden, kManyOutputs}; }

// fp32: a thread a flow.
constexpr std::int64_t kMostManyBlocks = 680;  // four on each of 170 multiprocessors
constexpr int kStageRow = 9;  // vectors of 32 features; one more, so that 8 lanes meet 8 groups of banks
constexpr int kStageFloats = 32 * 4 * kStageRow;  // a warp's

TWINBENCH_HOST_DEVICE std::int64_t many_blocks(std::int64_t flows) {
  const std::int64_t groups = (flows + kThreads - 1) / kThreads,
                     each = (groups + kMostManyBlocks - 1) / kMostManyBlocks;
  return each > 0 ? (groups + each - 1) / each : 0;
}
TWINBENCH_HOST_DEVICE std::int64_t many_shared_bytes() {
  return std::int64_t{4} * many_layout().padded() + std::int64_t{4} * kWarps * kStageFloats;
}

// bf16: a warp 32 flows, on tensor cores. Blocks are large, so that the weights are loaded seldom; seven warps leave
// 40,000 flows a block for each of 170 multiprocessors.
constexpr int kTileFlows = 32, kTileWarps = 7;
constexpr int kTileThreads = 224;
static_assert(kTileThreads == 32 * kTileWarps);

TWINBENCH_HOST_DEVICE std::int64_t tile_groups(std::int64_t flows) { return (flows + kTileFlows - 1) / kTileFlows; }
TWINBENCH_HOST_DEVICE std::int64_t tile_blocks(std::int64_t flows) {
  const std::int64_t wanted = (tile_groups(flows) + kTileWarps - 1) / kTileWarps,
                     each = (wanted + kMostManyBlocks - 1) / kMostManyBlocks;
  return each > 0 ? (wanted + each - 1) / each : 0;
}

// Dynamic shared memory of the tile kernel, in bytes: packed weights; the three matrices in bf16 as slices of
// kernels/common/tile_product.h, [out][32 in]; of each warp the given state of 32 flows, then it encoded.
struct TileShared {
  static constexpr int kSliceBytes = kManyHidden * 32 * 2;  // of 32 output channels
  static constexpr int kGivenBytes = kTileFlows * 4 * 4, kEncodedBytes = kTileFlows * 16;
  TWINBENCH_HOST_DEVICE static int slice(int layer) { return many_layout().padded() * 4 + layer * kSliceBytes; }
  TWINBENCH_HOST_DEVICE static int given(int warp) {
    return slice(2) + kManyOutputs / kManyHidden * kSliceBytes + warp * (kGivenBytes + kEncodedBytes);
  }
  TWINBENCH_HOST_DEVICE static int encoded(int warp) { return given(warp) + kGivenBytes; }
};
TWINBENCH_HOST_DEVICE std::int64_t tile_shared_bytes() { return TileShared::given(kTileWarps); }

}  // namespace twinbench::energy_flow::simple_neuron
