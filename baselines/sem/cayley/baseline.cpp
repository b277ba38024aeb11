// Baseline of sem.cayley: conjugate gradients for every call, an operator a term, edges scattered scale by scale and
// part by part; after every iteration the host reads the worst residual.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "src/component.h"
#include "src/inputs.h"
#include "src/sem/common/graph.h"

namespace twinbench::sem::cayley {
namespace {

constexpr double kIntensityFloor = 1e-8, kZeroRow = 1e-30;

// A complex matrix [rows, dim], real and imaginary parts apart.
struct Field {
  at::Tensor re, im;
};
Field from_planes(const at::Tensor& planes) { return {planes.select(0, 0), planes.select(0, 1)}; }
at::Tensor planes_of(const Field& v) { return at::stack({v.re, v.im}, 0); }

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs), setting_(setting), half_step_(setting.option("dt") / 2) {
    check_graph(inputs["nodes"], inputs["starts"], setting.size("dim"));
    const at::Tensor starts = inputs["starts"].cpu().contiguous();
    const auto* const begin = starts.const_data_ptr<std::int64_t>();
    for (std::int64_t scale = 0; scale < setting.size("scales"); ++scale) {
      const std::int64_t count = begin[scale + 1] - begin[scale];
      const at::Tensor nodes = inputs["nodes"].narrow(0, begin[scale], count);
      scales_.push_back({inputs["theta"].narrow(0, begin[scale], count), nodes.select(1, 0).contiguous(),
                         nodes.select(1, 1).contiguous()});
    }
    // In fp64 it is the oracle: as near as that arithmetic comes, however many iterations it takes.
    const bool oracle = setting.dtype == Dtype::kFp64 && !setting.on("plus_sign");
    tolerance_ = oracle ? 1e-13 : setting.option("tolerance");
    most_iterations_ = static_cast<std::int64_t>(setting.option("most_iterations"));
    if (setting.on("plus_sign")) most_iterations_ = static_cast<std::int64_t>(setting.option("plus_sign_iterations"));
    if (oracle) most_iterations_ = std::max(most_iterations_, 8 * setting.size("dim") + 200);
  }

  void run() override {
    iterations_[0] = iterations_[1] = 0;
    const Field rotated = rotate();
    const Field right = operate(rotated, -1);
    const Field x = solve(right, 1, iterations_[0]);
    if (setting_.backward()) return run_backward(rotated, x);
    const at::Tensor finite = at::all(at::isfinite(at::add(x.re, x.im)), 1);
    results_ = {{"x", planes_of(x)},
                {"nonfinite_rows", at::sum(at::logical_not(finite), {0}, true, at::kInt)},
                {"iterations", iterations()}};
  }

  NamedTensors outputs() override { return results_; }

 private:
  struct Scale {
    at::Tensor theta, first, second;  // [edges]
  };

  at::Tensor iterations() const {
    const at::Tensor numbers = at::empty({2}, at::kInt);
    for (int i = 0; i < 2; ++i) numbers.mutable_data_ptr<std::int32_t>()[i] = static_cast<std::int32_t>(iterations_[i]);
    return numbers.to(inputs_["psi"].device());
  }

  // C04: the phase turns by the intensity's share of its row's mean.
  Field rotate() {
    const Field psi = from_planes(inputs_["psi"]);
    const at::Tensor squares = at::add(at::mul(psi.re, psi.re), at::mul(psi.im, psi.im));
    floor_ = at::add(at::mean(squares, {1}, true), kIntensityFloor);
    intensity_ = at::div(squares, floor_);
    const at::Tensor phase = at::mul(intensity_, inputs_["alpha"]);
    cosine_ = at::cos(phase), sine_ = at::sin(phase);
    return {at::sub(at::mul(psi.re, cosine_), at::mul(psi.im, sine_)),
            at::add(at::mul(psi.re, sine_), at::mul(psi.im, cosine_))};
  }

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
    const at::Tensor shares = at::softmax(inputs_["mix"], 0);
    return {apply_to_part(shares, v.re), apply_to_part(shares, v.im)};
  }

  // (I + sign * i * dt/2 * H) v
  Field operate(const Field& v, double sign) const {
    const Field h = apply(v);
    return {at::sub(v.re, h.im, sign * half_step_), at::add(v.im, h.re, sign * half_step_)};
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

  // (I + sign * i * dt/2 * H) x = b, all rows until the worst one has converged. A row with a NaN never does and stops
  // no other one: the largest residual leaves it out.
  Field solve(const Field& b, double sign, std::int64_t& iterations) const {
    const at::Tensor length = at::masked_fill(inner(b, b), at::lt(inner(b, b), kZeroRow), 0);
    Field x{at::zeros_like(b.re), at::zeros_like(b.im)}, r = b, p = b;
    at::Tensor rho = length;
    if (b.re.size(0) == 0) return x;
    while (iterations < most_iterations_) {
      ++iterations;
      const Field q = operate(p, sign);
      const at::Tensor alpha = ratio(rho, inner(p, q));
      x = step(x, alpha, p, 1);
      r = step(r, alpha, q, -1);
      const at::Tensor next = inner(r, r);
      const at::Tensor worst = at::max(at::nan_to_num(ratio(next, length), 0, 0, 0));
      if (worst.item<double>() <= tolerance_ * tolerance_) break;
      const at::Tensor beta = ratio(next, rho);
      p = step(r, beta, p, setting_.on("plus_sign") ? 1 : -1);
      rho = next;
    }
    return x;
  }

  // C06: the adjoint system, then the edges scale by scale; C02: their weights; C04: the rotation.
  void run_backward(const Field& rotated, const Field& x) {
    const Field given = from_planes(inputs_["grad_x"]);
    Field z = given;
    if (!setting_.on("straight_through")) z = solve(given, -1, iterations_[1]);
    const Field gradient = operate(z, 1);
    const Field y{at::add(x.re, rotated.re), at::add(x.im, rotated.im)};
    edges_backward(z, y);
    rotate_backward(rotated, gradient);
    results_.set("iterations", iterations());
  }

  void edges_backward(const Field& z, const Field& y) {
    const at::Tensor shares = at::softmax(inputs_["mix"], 0);
    std::vector<at::Tensor> of_theta, of_shares;
    for (std::size_t scale = 0; scale < scales_.size(); ++scale) {
      const auto& [theta, first, second] = scales_[scale];
      const auto across = [&](const at::Tensor& v) {
        return at::sub(at::index_select(v, 1, first), at::index_select(v, 1, second));
      };
      const at::Tensor terms = at::sub(at::mul(across(z.re), across(y.im)), at::mul(across(z.im), across(y.re)));
      const at::Tensor gradient = at::mul(at::sum(terms, {0}), half_step_);
      const at::Tensor share = shares.select(0, static_cast<std::int64_t>(scale));
      of_theta.push_back(at::mul(at::mul(gradient, share), at::sigmoid(theta)));
      of_shares.push_back(at::sum(at::mul(gradient, at::softplus(theta)), {0}, true));
    }
    const at::Tensor of_all = at::cat(of_shares);
    results_.set("grad_theta", at::cat(of_theta));
    results_.set("grad_mix", at::mul(shares, at::sub(of_all, at::sum(at::mul(shares, of_all)))));
  }

  void rotate_backward(const Field& rotated, const Field& gradient) {
    const Field psi = from_planes(inputs_["psi"]);
    const at::Tensor of_phase = at::sub(at::mul(gradient.im, rotated.re), at::mul(gradient.re, rotated.im));
    results_.set("grad_alpha", at::sum(at::mul(of_phase, intensity_), {0}));
    const at::Tensor u = at::mul(of_phase, inputs_["alpha"]);
    const at::Tensor common = at::div(at::mean(at::mul(u, intensity_), {1}, true), floor_);
    const at::Tensor of_square = at::mul(at::sub(at::div(u, floor_), common), 2);
    const Field back{at::add(at::mul(gradient.re, cosine_), at::mul(gradient.im, sine_)),
                     at::sub(at::mul(gradient.im, cosine_), at::mul(gradient.re, sine_))};
    results_.set("grad_psi", planes_of({at::add(back.re, at::mul(psi.re, of_square)),
                                        at::add(back.im, at::mul(psi.im, of_square))}));
  }

  NamedTensors inputs_, results_;
  Setting setting_;
  double half_step_, tolerance_ = 0;
  std::int64_t most_iterations_ = 0, iterations_[2] = {};  // of the forward and of the adjoint system
  std::vector<Scale> scales_;
  at::Tensor floor_, intensity_, cosine_, sine_;  // of the rotation, for the way back
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::sem::cayley
