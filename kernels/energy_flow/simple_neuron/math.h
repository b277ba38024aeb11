// Index maps and sizes of energy_flow.simple_neuron (C06), shared by host and device; its arithmetic is kernels/common
// (products, layer normalisation, GELU).
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/neuron_stage.h"

namespace twinbench::energy_flow::simple_neuron {

// ---- how the kernels divide their work ------------------------------------------------------------------------------

constexpr int kThreads = kNeuronThreads;
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
