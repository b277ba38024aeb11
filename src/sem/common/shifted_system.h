// The system of sem C05 in fp64, from its parameters: what specifications hold results against, without any of the
// variants' code.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "src/named_tensors.h"

namespace twinbench::sem {

using ComplexRow = std::vector<std::complex<double>>;

inline double norm(const ComplexRow& v) {
  double sum = 0;
  for (const auto& value : v) sum += std::norm(value);
  return std::sqrt(sum);
}

// A = I + i dt/2 H, H being the mixed Laplacians of C02.
class ShiftedSystem {
 public:
  // Inputs "theta", "mix", "nodes" and "starts".
  ShiftedSystem(const NamedTensors& inputs, double half_step, std::int64_t dim) : half_step_(half_step), dim_(dim) {
    const auto real = [&](const char* name) { return inputs[name].cpu().to(at::kDouble).contiguous(); };
    const at::Tensor theta = real("theta"), mix = real("mix"), nodes = inputs["nodes"].cpu().contiguous(),
                     starts = inputs["starts"].cpu().contiguous();
    double sum = 0;
    for (std::int64_t scale = 0; scale < mix.numel(); ++scale) sum += std::exp(mix.const_data_ptr<double>()[scale]);
    for (std::int64_t scale = 0; scale < mix.numel(); ++scale)
      for (std::int64_t edge = starts.const_data_ptr<std::int64_t>()[scale];
           edge < starts.const_data_ptr<std::int64_t>()[scale + 1]; ++edge) {
        const auto* const pair = nodes.const_data_ptr<std::int64_t>() + 2 * edge;
        const double x = theta.const_data_ptr<double>()[edge];
        edges_.push_back({static_cast<std::size_t>(pair[0]), static_cast<std::size_t>(pair[1]),
                          std::exp(mix.const_data_ptr<double>()[scale]) / sum *
                              (std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))))});
      }
  }

  // (I + sign * i * dt/2 * H) v
  ComplexRow operated(const ComplexRow& v, double sign) const {
    ComplexRow result = v;
    for (const auto& [i, j, weight] : edges_) {
      const auto flow = std::complex<double>(0, sign * half_step_) * weight * (v[i] - v[j]);
      result[i] += flow;
      result[j] -= flow;
    }
    return result;
  }

  // dt/2 times the largest eigenvalue of H, from below, by the power method.
  double largest_shift() const {
    ComplexRow v(static_cast<std::size_t>(dim_));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::cos(3.0 * static_cast<double>(i) + 1);
    double shift = 0;
    for (int step = 0; step < 40; ++step) {
      ComplexRow next = operated(v, 1);
      for (std::size_t i = 0; i < v.size(); ++i) next[i] -= v[i];
      const double length = norm(next);
      if (!(length > 1e-200) || !std::isfinite(length)) return 0;
      shift = length / norm(v);
      for (auto& value : next) value *= 1 / length;
      v = std::move(next);
    }
    return shift;
  }

  // Of a relative residual in fp32, beside the solver's tolerance (C05): what is lost in x, the matrix enlarges by its
  // largest singular value, and a node's sum over more neighbours than the documented layer's 56 rounds by the root of
  // that many more.
  double least_rounding() const { return 3e-7 * std::hypot(1, largest_shift()); }
  double rounding() const {
    constexpr double kDocumentedNeighbours = 56;
    const double neighbours = 2.0 * static_cast<double>(edges_.size()) / static_cast<double>(dim_);
    return least_rounding() * std::sqrt(std::max(1.0, neighbours / kDocumentedNeighbours));
  }

  // A x = b from zero to that relative residual, by C05's recurrence; how many iterations it took.
  struct Solution {
    ComplexRow x;
    std::int64_t iterations = 0;
  };
  Solution solved(const ComplexRow& b, double tolerance, std::int64_t most) const {
    Solution solution{ComplexRow(b.size()), 0};
    const double whole = std::pow(norm(b), 2);
    if (!(whole >= 1e-30) || !std::isfinite(whole)) return solution;
    ComplexRow r = b, p = b;
    double rho = whole, alpha = 1;
    while (solution.iterations < most) {
      ++solution.iterations;
      const ComplexRow q = operated(p, 1);
      for (std::size_t i = 0; i < b.size(); ++i) {
        solution.x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
      }
      const double next = std::pow(norm(r), 2);
      if (next <= tolerance * tolerance * whole) break;
      const double t = next / rho;
      for (std::size_t i = 0; i < b.size(); ++i) p[i] = r[i] - t * p[i];
      alpha = 1 / (1 + t / alpha);
      rho = next;
    }
    return solution;
  }

 private:
  struct WeightedEdge {
    std::size_t i, j;
    double weight;
  };

  double half_step_;
  std::int64_t dim_;
  std::vector<WeightedEdge> edges_;
};

}  // namespace twinbench::sem
