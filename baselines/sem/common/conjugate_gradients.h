// Conjugate gradients as plain ATen has them (sem C05): an operator a term, edges scattered scale by scale and part by
// part, weights anew each time; after every iteration the host reads the worst residual.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "src/component.h"

namespace twinbench::sem {

// A complex matrix [rows, dim], real and imaginary parts apart.
struct Field {
  at::Tensor re, im;
};
inline Field from_planes(const at::Tensor& planes) { return {planes.select(0, 0), planes.select(0, 1)}; }
inline at::Tensor planes_of(const Field& v) { return at::stack({v.re, v.im}, 0); }

class ConjugateGradients {
 public:
  struct Stop {
    double tolerance = 0;  // relative residual of the worst row
    std::int64_t most_iterations = 0;
    bool plus_sign = false;  // the original's recurrence, for a symmetric matrix
  };

  // Inputs "theta", "mix", "nodes" and "starts".
  ConjugateGradients(const NamedTensors& inputs, double half_step, const Stop& stop)
      : half_step_(half_step), stop_(stop), mix_(inputs["mix"]) {
    const at::Tensor starts = inputs["starts"].cpu().contiguous();
    const auto* const begin = starts.const_data_ptr<std::int64_t>();
    for (std::int64_t scale = 0; scale < mix_.size(0); ++scale) {
      const std::int64_t count = begin[scale + 1] - begin[scale];
      const at::Tensor nodes = inputs["nodes"].narrow(0, begin[scale], count);
      scales_.push_back({inputs["theta"].narrow(0, begin[scale], count), nodes.select(1, 0).contiguous(),
                         nodes.select(1, 1).contiguous()});
    }
  }

  struct Scale {
    at::Tensor theta, first, second;  // [edges]
  };
  const std::vector<Scale>& scales() const { return scales_; }

  // (I + sign * i * dt/2 * H) v
  Field operate(const Field& v, double sign) const {
    const Field h = apply(v);
    return {at::sub(v.re, h.im, sign * half_step_), at::add(v.im, h.re, sign * half_step_)};
  }

  // (I + sign * i * dt/2 * H) x = b, all rows until the worst one has converged. A row with a NaN never does and stops
  // no other one: the largest residual leaves it out. `left_over` gets every row's last residual over its right side,
  // squared, [rows, 1].
  Field solve(const Field& b, double sign, std::int64_t& iterations, at::Tensor* left_over = nullptr) const {
    const at::Tensor square = inner(b, b), zero = at::lt(square, kZeroRow), length = at::masked_fill(square, zero, 0);
    Field x{at::zeros_like(b.re), at::zeros_like(b.im)};
    Field r{at::masked_fill(b.re, zero, 0), at::masked_fill(b.im, zero, 0)}, p = r;
    if (left_over) *left_over = ratio(length, length);
    at::Tensor rho = length;
    if (b.re.size(0) == 0) return x;
    while (iterations < stop_.most_iterations) {
      ++iterations;
      const Field q = operate(p, sign);
      const at::Tensor alpha = ratio(rho, inner(p, q));
      x = step(x, alpha, p, 1);
      r = step(r, alpha, q, -1);
      const at::Tensor next = inner(r, r);
      const at::Tensor left = ratio(next, length), worst = at::max(at::nan_to_num(left, 0, 0, 0));
      if (left_over) *left_over = left;
      if (worst.item<double>() <= stop_.tolerance * stop_.tolerance) break;
      const at::Tensor beta = ratio(next, rho);
      p = step(r, beta, p, stop_.plus_sign ? 1 : -1);
      rho = next;
    }
    return x;
  }

 private:
  static constexpr double kZeroRow = 1e-30;

  static at::Tensor indices(const at::Tensor& nodes, std::int64_t rows) {
    return nodes.unsqueeze(0).expand({rows, nodes.size(0)});
  }

  // One scale's Laplacian times a real matrix: the weights anew each time, edges by scattering (C01, C03).
  at::Tensor laplacian(const Scale& scale, const at::Tensor& v) const {
    const std::int64_t rows = v.size(0);
    const at::Tensor weights = at::softplus(scale.theta);
    at::Tensor degree = at::zeros({v.size(1)}, v.options());
    degree.scatter_add_(0, scale.first, weights);
    degree.scatter_add_(0, scale.second, weights);
    at::Tensor sum = at::zeros(v.sizes(), v.options());
    sum.scatter_add_(1, indices(scale.first, rows), at::mul(at::index_select(v, 1, scale.second), weights));
    sum.scatter_add_(1, indices(scale.second, rows), at::mul(at::index_select(v, 1, scale.first), weights));
    return at::sub(at::mul(v, degree), sum);
  }

  at::Tensor apply_to_part(const at::Tensor& shares, const at::Tensor& v) const {
    at::Tensor sum;
    for (std::size_t scale = 0; scale < scales_.size(); ++scale) {
      const at::Tensor term = at::mul(laplacian(scales_[scale], v), shares.select(0, static_cast<std::int64_t>(scale)));
      sum = sum.defined() ? at::add(sum, term) : term;
    }
    return sum;
  }
  Field apply(const Field& v) const {
    const at::Tensor shares = at::softmax(mix_, 0);
    return {apply_to_part(shares, v.re), apply_to_part(shares, v.im)};
  }

  static at::Tensor inner(const Field& u, const Field& v) {
    return at::sum(at::add(at::mul(u.re, v.re), at::mul(u.im, v.im)), {1}, true);
  }
  // a / b, 0 where b is: of rows that are zero, or solved exactly.
  static at::Tensor ratio(const at::Tensor& a, const at::Tensor& b) {
    return at::masked_fill(at::div(a, b), at::eq(b, 0), 0);
  }
  static Field step(const Field& v, const at::Tensor& length, const Field& direction, double sign) {
    return {at::add(v.re, at::mul(direction.re, length), sign), at::add(v.im, at::mul(direction.im, length), sign)};
  }

  double half_step_;
  Stop stop_;
  at::Tensor mix_;
  std::vector<Scale> scales_;
};

}  // namespace twinbench::sem
