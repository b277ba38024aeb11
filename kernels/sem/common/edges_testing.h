// What the tests of kernels with a step's edges share: edges between drawn nodes, and their gradients by a plain loop.
#pragma once

#include <algorithm>
#include <vector>

#include "harness/simt/kernel_testing.h"
#include "kernels/sem/common/edges.h"

namespace twinbench::sem {

// The plain numbers, and what a plain loop makes of them.
struct EdgeNumbers {
  static constexpr int kDim = 9, kEdges = 300;
  kernels::simt::Floats product = kernels::simt::spread(kDim * kDim, 1), of_theta = kernels::simt::spread(kEdges, 2),
                        of_share = kernels::simt::spread(kEdges, 3), shares;
  std::vector<std::int32_t> nodes, scale;
  std::vector<double> grad_theta, grad_mix;

  // Of three scales, the middle one's edges in two blocks; of two, where there are but two shares.
  explicit EdgeNumbers(const kernels::simt::Floats& given) : shares(given) {
    const auto at = [](int i) { return static_cast<std::size_t>(i); };
    const auto c = [&](int a, int b) { return double{product[at(a * kDim + b)]}; };
    const int last = static_cast<int>(shares.size()) - 1;
    std::vector<double> of_scale(shares.size());
    for (int edge = 0; edge < kEdges; ++edge) {
      const int i = edge % kDim, j = (edge * 7 + 3) % kDim;
      nodes.insert(nodes.end(), {i, j});
      scale.push_back(std::min(last, edge < 20 ? 0 : edge < 280 ? 1 : 2));
      const double across = c(i, i) + c(j, j) - c(i, j) - c(j, i);
      grad_theta.push_back(of_theta[at(edge)] * across);
      of_scale[at(scale.back())] += of_share[at(edge)] * across;
    }
    double mean = 0;
    for (std::size_t s = 0; s < shares.size(); ++s) mean += shares[s] * of_scale[s];
    for (std::size_t s = 0; s < shares.size(); ++s) grad_mix.push_back(shares[s] * (of_scale[s] - mean));
  }
};

// On guarded memory, with places for what a kernel gives.
struct PlacedEdges {
  EdgeNumbers numbers;
  kernels::simt::Buffer product, of_theta, of_share, shares, grad_theta, grad_mix, share_terms;
  kernels::simt::GuardedBuffer<std::int32_t> nodes, scale;
  kernels::simt::GuardedBuffer<unsigned> finished;

  explicit PlacedEdges(const kernels::simt::Floats& given)
      : numbers(given),
        product(numbers.product),
        of_theta(numbers.of_theta),
        of_share(numbers.of_share),
        shares(numbers.shares),
        grad_theta(EdgeNumbers::kEdges),
        grad_mix(given.size()),
        share_terms(static_cast<std::size_t>(edge_blocks(EdgeNumbers::kEdges)) * given.size()),
        nodes(numbers.nodes),
        scale(numbers.scale),
        finished(std::vector<unsigned>{0}) {}

  EdgeArguments arguments() const {
    return {.edges = EdgeNumbers::kEdges,
            .dim = EdgeNumbers::kDim,
            .scales = static_cast<int>(numbers.shares.size()),
            .product = product.data(),
            .nodes = nodes.data(),
            .scale = scale.data(),
            .of_theta = of_theta.data(),
            .of_share = of_share.data(),
            .shares = shares.data(),
            .grad_theta = grad_theta.data(),
            .grad_mix = grad_mix.data(),
            .share_terms = share_terms.data(),
            .finished = finished.data()};
  }

  void expect_gradients() const {
    kernels::simt::expect_close(grad_theta, numbers.grad_theta, 1e-6, "grad_theta");
    kernels::simt::expect_close(grad_mix, numbers.grad_mix, 2e-5, "grad_mix");
  }
};

}  // namespace twinbench::sem
