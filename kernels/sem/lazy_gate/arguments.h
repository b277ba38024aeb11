// Arguments and launcher of sem.lazy_gate's kernel. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/common/grid.h"
#include "kernels/sem/lazy_gate/math.h"

namespace twinbench::sem::lazy_gate {

constexpr int kThreads = 256;
constexpr int kTileRows = 4;        // of a block, as long as its three vectors fit beside each other
constexpr int kMostTileDim = 1024;  // from there on one row a block
constexpr int kMostDim = 4096;

constexpr int rows_of(std::int64_t dim) { return dim <= kMostTileDim ? kTileRows : 1; }
// x, r and p, complex.
constexpr std::int64_t shared_bytes(std::int64_t dim) { return std::int64_t{24} * dim * rows_of(dim); }

// dt/2 H by its rows: the sum of a node's weights, and each neighbour's.
struct Graph {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const float* diagonal = nullptr;           // [dim]
  const std::int32_t* begins = nullptr;      // [dim + 1]
  const std::int32_t* neighbours = nullptr;  // [begins[dim]]
  const float* weights = nullptr;
};

// One call: x = A^-1 A^H field for every row, or the cached solution.
struct CallArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0;
  std::int64_t plane = 0;  // elements between the real and the imaginary part of field and x
  int dim = 0;
  StopRule rule = {};
  Graph graph = {};
  const float* field = nullptr;  // [2, rows, dim], the planes `plane` apart
  float* x = nullptr;            // the same
  float* cache = nullptr;        // [2, rows, dim]
  std::int32_t *nonfinite_rows = nullptr, *skipped = nullptr, *iterations = nullptr;  // of this call
  unsigned* handover = nullptr;  // [4]: rows not finite, rows not skipped, most iterations, finished blocks; 0 between
};
void launch_call(const CallArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::sem::lazy_gate
