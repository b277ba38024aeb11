// Arguments and launcher of trainer2.field_dynamics' kernel. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/trainer2/field_dynamics/math.h"

namespace twinbench::trainer2::field_dynamics {

constexpr int kThreads = 256;
constexpr int kMostElements = 2048;  // complex numbers of a block: all cells of one column at least
constexpr int kColumns = 4;          // of a block where they fit: one sector of a cell's row
constexpr int kHistories = 21;       // what the dissipative rule remembers: 0 to 20 steps

// How a row's columns, which never meet, are divided among blocks.
struct Split {
  int columns = 1, parts = 1;  // columns of a block; blocks of a row

  TWINBENCH_HOST_DEVICE static Split of(int width, int height, int dimension) {
    Split split{kColumns, 1};
    while (split.columns > 1 && (split.columns > dimension || split.columns * width * height > kMostElements))
      split.columns /= 2;
    split.parts = (dimension + split.columns - 1) / split.columns;
    return split;
  }
};

// A whole window.
struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  int width = 0, height = 0, dimension = 0;
  Split split = {};
  std::int64_t steps = 0;
  bool dissipative = false;
  Constants by = {};
  float* field = nullptr;              // [width, height, dimension, dimension, 2], advanced in place
  float* momentum = nullptr;           // the same
  const float* equilibrium = nullptr;  // the same
  const float* force = nullptr;        // [dimension], every force_stride-th element
  std::int64_t force_stride = 1;
  const float* factors = nullptr;   // [kHistories]: the Laplacian's factor after so many dissipative steps
  std::int64_t* history = nullptr;  // all equal: [dimension], of kernels [dimension * split.parts], one a block
  float* row_modulus = nullptr;     // [dimension, steps]
  float* row_mean = nullptr;        // [dimension, steps]
  float* part_sums = nullptr;       // [dimension, split.parts, steps, 2], scratch: moduli and real parts
  unsigned* finished = nullptr;     // [dimension], 0 between launches
};

// One kernel; the last block of a row adds up its sums. Throws CudaError if the launch is refused.
void launch(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::trainer2::field_dynamics
