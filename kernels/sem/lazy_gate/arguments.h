// Arguments and launchers of sem.lazy_gate's kernels. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/common/grid.h"
#include "kernels/sem/common/edges.h"
#include "kernels/sem/lazy_gate/math.h"

namespace twinbench::sem::lazy_gate {

constexpr int kThreads = 256;
constexpr int kTileRows = 4;        // of a block, as long as its three vectors fit beside each other
constexpr int kMostTileDim = 1024;  // from there on one row a block
constexpr int kSlice = 32;          // nodes whose neighbours lie beside each other: a warp's

constexpr int rows_of(std::int64_t dim) { return dim <= kMostTileDim ? kTileRows : 1; }
// x, r and p, complex.
constexpr std::int64_t shared_bytes(std::int64_t dim) { return std::int64_t{24} * dim * rows_of(dim); }

// dt/2 H in slices of kSlice nodes, as wide as the largest number of neighbours in each: neighbour e of node i lies at
// slices[i / kSlice] + kSlice * e + i % kSlice, so that a warp reads its nodes' neighbours side by side.
struct Graph {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const float* diagonal = nullptr;           // [dim], sums of the nodes' weights
  const std::int32_t* neighbours = nullptr;  // [dim], how many a node has
  const std::int32_t* slices = nullptr;      // [dim / kSlice, up]
  const std::int32_t* entries = nullptr;     // [places, 2]: the neighbour, and the bits of its weight
};

// One call: x = A^-1 A^H field for every row, or the cached solution.
struct CallArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0;
  std::int64_t plane = 0;  // elements between the real and the imaginary part of field and x
  int dim = 0;
  StopRule rule = {};
  bool keyed = false;
  Graph graph = {};
  const float* field = nullptr;       // [2, rows, dim], the planes `plane` apart
  const std::int64_t* key = nullptr;  // [2]: of this call
  float* x = nullptr;                 // as field
  float* cache = nullptr;             // [2, rows, dim]
  std::int64_t* entry = nullptr;      // [3]: whether the cache holds anything, and its key
  std::int32_t* counts = nullptr;     // [kCounts], count_stride apart
  float* largest_residual = nullptr;  // [1]
  std::int64_t count_stride = 0;
  unsigned* handover = nullptr;  // [kHandover], 0 between launches
};
// Bad, solved, discarded and unconverged rows, most iterations and all, the largest residual's bits, finished blocks.
constexpr int kHandover = 8;
void launch_call(const CallArguments& arguments, kernels::Stream stream);

// The way back through one call: A^H z = grad_x for every row, from zero, and what the edges' product takes.
struct AdjointArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0;
  std::int64_t plane = 0;
  int dim = 0;
  StopRule rule = {};
  Graph graph = {};
  const float *field = nullptr, *x = nullptr, *grad_x = nullptr;  // [2, rows, dim], the planes `plane` apart
  float* grad_field = nullptr;                                    // these, too: A z
  float* z = nullptr;
  float* y = nullptr;                  // imaginary part of x + field, then minus the real one
  std::int32_t* iterations = nullptr;  // [1]
  unsigned* handover = nullptr;        // as CallArguments'
};
void launch_adjoint(const AdjointArguments& arguments, kernels::Stream stream);

void launch_edges(const EdgeArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::sem::lazy_gate
