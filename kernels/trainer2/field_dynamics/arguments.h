// Arguments and launcher of trainer2.field_dynamics' kernel. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/trainer2/field_dynamics/math.h"

namespace twinbench::trainer2::field_dynamics {

constexpr int kMostElements = 2048;  // of one row: width * height * dimension complex numbers, held by one block
constexpr int kHistories = 21;       // what the dissipative rule remembers: 0 to 20 steps

// A whole window.
struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  int width = 0, height = 0, dimension = 0;
  std::int64_t steps = 0;
  bool dissipative = false;
  Constants by = {};
  float* field = nullptr;              // [width, height, dimension, dimension, 2], advanced in place
  float* momentum = nullptr;           // the same
  const float* equilibrium = nullptr;  // the same
  const float* force = nullptr;        // [dimension], every force_stride-th element
  std::int64_t force_stride = 1;
  const float* factors = nullptr;   // [kHistories]: the Laplacian's factor after so many dissipative steps
  std::int64_t* history = nullptr;  // [dimension], one a row, all equal
  float* row_modulus = nullptr;     // [dimension, steps]
  float* row_mean = nullptr;        // [dimension, steps]
};

// One kernel, a block a row. Throws CudaError if the launch is refused.
void launch(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::trainer2::field_dynamics
