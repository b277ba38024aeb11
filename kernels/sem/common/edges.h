// A step's edges on the way back (sem C06, C02), torch-free: arguments, and the arithmetic that host and device share.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/common/grid.h"

namespace twinbench::sem {

constexpr int kEdgeThreads = 256;

// dL/dW of an edge over dt / 2, from the real matrix C = Im(Z^H Y) [dim, dim].
template <class Real>
TWINBENCH_HOST_DEVICE Real across_edge(const Real* c, std::int64_t dim, std::int64_t i, std::int64_t j) {
  return (c[i * dim + i] - c[i * dim + j]) + (c[j * dim + j] - c[j * dim + i]);
}

// From the product C to the gradients of the edges' parameters and of the scales' mix.
struct EdgeArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t edges = 0;
  int dim = 0, scales = 0;
  const float* product = nullptr;                        // [dim, dim]
  const std::int32_t* nodes = nullptr;                   // [edges, 2]
  const std::int32_t* scale = nullptr;                   // [edges]
  const float *of_theta = nullptr, *of_share = nullptr;  // [edges]
  const float* shares = nullptr;                         // [scales]
  float *grad_theta = nullptr, *grad_mix = nullptr;
  float* share_terms = nullptr;  // [edge_blocks, scales]
  unsigned* finished = nullptr;  // 0 between launches
};
constexpr std::int64_t edge_blocks(std::int64_t edges) {
  return edges > 0 ? kernels::blocks_of(edges, kEdgeThreads) : 1;  // one writes the mix' zeros
}

}  // namespace twinbench::sem
