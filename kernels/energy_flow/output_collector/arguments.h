// Arguments and launchers of energy_flow.output_collector's kernels. No CUDA headers, so that optimized/ stays
// host-compiled.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/layer_arguments.h"

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

// One kernel each. Throw CudaError if the launch is refused. No row: nothing is launched.
void launch_map(const MapArguments& arguments, kernels::Stream stream);
void launch_layer(const LayerArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::output_collector
