// Arguments and launchers of energy_flow.output_collector's kernels. No CUDA headers, so that optimized/ stays
// host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow::output_collector {

// surface[row][cell[row][i]] = energy[row][i] * cell_weight of that cell, else 0.
struct MapArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, cells = 0, entries = 0;
  const float* energy = nullptr;       // [rows, entries]
  const std::int64_t* cell = nullptr;  // [rows, entries]; negative: no entry
  const float* cell_weight = nullptr;  // [cells]
  float* surface = nullptr;            // [rows, cells], an operand
  bool round = false;                  // operands to bf16
};

// out = GELU(x weight^T + bias), with each row's moments by pieces of its columns; in the last layer without either.
struct LayerArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, inner = 0, columns = 0;
  const float* x = nullptr;  // [rows, inner]
  // Of a layer before, whose normalisation is done here; null: x is an operand.
  const float *gain = nullptr, *shift = nullptr;  // [inner]
  const float* moments = nullptr;                 // [2, rows, pieces]: means and sums of squared deviations
  const float* weight = nullptr;                  // [columns, inner]; null: in bf16
  const std::uint16_t* weight_bf16 = nullptr;
  const float* bias = nullptr;   // [columns]
  float* out = nullptr;          // [rows, columns]
  float* out_moments = nullptr;  // [2, rows, pieces]; null: the last layer
};

constexpr int kLayerColumns = 16;  // of a block, and of a piece of the moments
TWINBENCH_HOST_DEVICE std::int64_t pieces_of(std::int64_t columns) {
  return (columns + kLayerColumns - 1) / kLayerColumns;
}

// One kernel each. Throw CudaError if the launch is refused. No row: nothing is launched.
void launch_map(const MapArguments& arguments, kernels::Stream stream);
void launch_layer(const LayerArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::output_collector
