// Index maps and sizes of energy_flow.simple_neuron (C06), shared by host and device; its arithmetic is kernels/common
// (products, layer normalisation, GELU).
#pragma once

#include <cstdint>

#include "kernels/common/slice.h"
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

// The parameters as the tile kernel keeps them in shared memory, laid out once at set-up: the coordinates' layer, bias,
// gain and shift of both hidden layers, the last bias; then the three matrices in bf16, [out][in] with 32 inputs (zeros
// beyond those there are), a slice of kernels/common/slice.h each.
struct TilePack {
  static constexpr int kLayer = 3 * kManyHidden;  // floats
  static constexpr int kFloats = 12 + 2 * kLayer + kManyOutputs, kValues = (2 * kManyHidden + kManyOutputs) * 32;
  static constexpr int kTotal = kFloats + kValues / 2;  // floats in all
  static_assert(kFloats % 4 == 0);
  TWINBENCH_HOST_DEVICE static int bias(int layer) { return 12 + layer * kLayer; }
  TWINBENCH_HOST_DEVICE static int gain(int layer) { return bias(layer) + kManyHidden; }
  TWINBENCH_HOST_DEVICE static int shift(int layer) { return gain(layer) + kManyHidden; }
  TWINBENCH_HOST_DEVICE static int bias_out() { return bias(2); }
  TWINBENCH_HOST_DEVICE static int slice(int layer) { return 4 * kFloats + layer * kManyHidden * 32 * 2; }  // bytes

  // Which of the packed weights (Layout) a float is, or a value of a matrix; -1: a zero.
  static int source_of_float(int at) {
    const Layout from = many_layout();
    if (at < bias(0)) return at;
    if (at >= bias_out()) return from.bias_out() + (at - bias_out());
    const int layer = (at - bias(0)) / kLayer;
    return from.bias(layer) + (at - bias(layer));
  }
  static int source_of_value(int at) {
    const Layout from = many_layout();
    const int row = at / kernels::kSliceDepth, layer = row < 2 * kManyHidden ? row / kManyHidden : 2;
    const int channel = row - layer * kManyHidden, place = at % kernels::kSliceDepth;
    const int input =
        kernels::swapped_chunk(channel, place / kernels::kChunk) * kernels::kChunk + place % kernels::kChunk;
    if (layer == 2) return from.weight_out() + input * kManyOutputs + channel;
    return input < from.inner(layer) ? from.weight(layer) + input * kManyHidden + channel : -1;
  }
};

// Dynamic shared memory of the tile kernel, in bytes: the parameters, then of each warp the given state of 32 flows and
// it encoded.
struct TileShared {
  static constexpr int kGivenBytes = kTileFlows * 4 * 4, kEncodedBytes = kTileFlows * 16;
  TWINBENCH_HOST_DEVICE static int given(int warp) {
    return 4 * TilePack::kTotal + warp * (kGivenBytes + kEncodedBytes);
  }
  TWINBENCH_HOST_DEVICE static int encoded(int warp) { return given(warp) + kGivenBytes; }
};
TWINBENCH_HOST_DEVICE std::int64_t tile_shared_bytes() { return TileShared::given(kTileWarps); }

}  // namespace twinbench::energy_flow::simple_neuron
