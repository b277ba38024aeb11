// How the whole backward pass (C17) divides its sums over flows, and the arithmetic that is its own. Host and device.
// In the namespace that had it first. Arithmetic of neuron, layers, heads, movement and collection is beside it.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/flow_slots.h"

namespace twinbench::energy_flow::flow_backward {

// ---- gradients of the heads' columns: 32 rows at a time, a warp a row, a lane a vector of columns -------------------

constexpr int kColumnThreads = 256;
constexpr int kRowsAtOnce = 32;
constexpr std::int64_t kMostColumnBlocks = 256;  // along the grid's x: each leaves a row of sums to add up

TWINBENCH_HOST_DEVICE std::int64_t column_blocks(std::int64_t rows) {
  const std::int64_t groups = (rows + kRowsAtOnce - 1) / kRowsAtOnce;
  return groups < kMostColumnBlocks ? groups : kMostColumnBlocks;
}

// A block's sums: gradients of [energy's second layer | displacement's x, y, z | the second layers' four biases], where
// first_biases is set of the first layers' biases too, then padding. trained: leading columns of the first layers, of
// which gradients are stored.
struct ColumnLayout {
  std::int32_t trained = 0, energy_width = 0, head_width = 0;
  bool first_biases = false;

  TWINBENCH_HOST_DEVICE std::int32_t out_bias() const { return energy_width + 3 * head_width; }
  TWINBENCH_HOST_DEVICE std::int32_t first_bias() const { return out_bias() + 4; }
  TWINBENCH_HOST_DEVICE std::int32_t all() const { return first_bias() + (first_biases ? trained : 0); }
  TWINBENCH_HOST_DEVICE std::int32_t stride() const { return (all() + 7) / 8 * 8; }
};

// ---- gradients of matrices: tiles of 96 gradient columns by 64 value columns, rows in pieces ------------------------

constexpr int kMatrixColumns = flow_forward::kTileColumns, kMatrixValues = flow_forward::kTileFlows;
constexpr int kMatrixRows = flow_forward::kSliceDepth;  // of a slice
constexpr int kMatrixThreads = flow_forward::kTileThreads;

TWINBENCH_HOST_DEVICE std::int32_t matrix_tiles(std::int32_t gradients, std::int32_t values) {
  return (gradients + kMatrixColumns - 1) / kMatrixColumns * ((values + kMatrixValues - 1) / kMatrixValues);
}

// Pieces into which rows are divided, slice by slice in turn; each has sums of its own, which are added at the end. Of
// the sizes alone, so that the sums are reproducible: as many as give every multiprocessor a block, four slices each.
constexpr std::int64_t kWantedBlocks = 170, kLeastRows = 4 * kMatrixRows, kMostPieces = 32;

TWINBENCH_HOST_DEVICE std::int32_t matrix_pieces(std::int64_t rows, std::int32_t tiles) {
  const std::int64_t wanted = (kWantedBlocks + tiles - 1) / tiles, there = (rows + kLeastRows - 1) / kLeastRows;
  const std::int64_t fewer = wanted < there ? wanted : there, most = fewer < kMostPieces ? fewer : kMostPieces;
  return static_cast<std::int32_t>(most > 1 ? most : 1);
}

}  // namespace twinbench::energy_flow::flow_backward
