// Arguments of a layer whose weights are streamed once for 16 rows, as output collector (C05) and the whole forward's
// mapper (C04) take it. In the namespace of the component that had it first.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow::output_collector {

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
  // Of a last layer that gives a surface (SurfaceEnergies): [1], [1], [columns].
  const float *scale = nullptr, *offset = nullptr, *cell_offset = nullptr;
};

constexpr int kLayerColumns = 16;  // of a block, and of a piece of the moments
TWINBENCH_HOST_DEVICE std::int64_t pieces_of(std::int64_t columns) {
  return (columns + kLayerColumns - 1) / kLayerColumns;
}

}  // namespace twinbench::energy_flow::output_collector
