// Baseline of sem.cayley: conjugate gradients for every call, an operator a term, edges scattered scale by scale and
// part by part; after every iteration the host reads the worst residual.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "baselines/sem/common/edges_backward.h"
#include "src/component.h"
#include "src/inputs.h"

namespace twinbench::sem::cayley {
namespace {

constexpr double kIntensityFloor = 1e-8;

// In fp64 it is the oracle: as near as that arithmetic comes, however many iterations it takes.
ConjugateGradients::Stop stop_of(const Setting& setting) {
  const bool plus_sign = setting.on("plus_sign"), oracle = setting.dtype == Dtype::kFp64 && !plus_sign;
  const auto most = static_cast<std::int64_t>(setting.option(plus_sign ? "plus_sign_iterations" : "most_iterations"));
  return {oracle ? 1e-13 : setting.option("tolerance"), oracle ? std::max(most, 8 * setting.size("dim") + 200) : most,
          plus_sign};
}

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        setting_(setting),
        half_step_(setting.option("dt") / 2),
        solver_(inputs, half_step_, stop_of(setting)) {}

  void run() override {
    iterations_[0] = iterations_[1] = 0;
    const Field rotated = rotate();
    const Field right = solver_.operate(rotated, -1);
    const Field x = solver_.solve(right, 1, iterations_[0]);
    if (setting_.backward()) return run_backward(rotated, x);
    const at::Tensor finite = at::all(at::isfinite(at::add(x.re, x.im)), 1);
    results_ = {{"x", planes_of(x)},
                {"nonfinite_rows", at::sum(at::logical_not(finite), {0}, true, at::kInt)},
                {"iterations", iterations()}};
  }

  NamedTensors outputs() override { return results_; }

 private:
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

  // C06: the adjoint system, then the edges scale by scale; C02: their weights; C04: the rotation.
  void run_backward(const Field& rotated, const Field& x) {
    const Field given = from_planes(inputs_["grad_x"]);
    Field z = given;
    if (!setting_.on("straight_through")) z = solver_.solve(given, -1, iterations_[1]);
    const Field gradient = solver_.operate(z, 1);
    const Field y{at::add(x.re, rotated.re), at::add(x.im, rotated.im)};
    const EdgeGradients edges = edges_backward(solver_, half_step_, inputs_["mix"], z, y);
    results_.set("grad_theta", edges.theta);
    results_.set("grad_mix", edges.mix);
    rotate_backward(rotated, gradient);
    results_.set("iterations", iterations());
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
  double half_step_;
  ConjugateGradients solver_;
  std::int64_t iterations_[2] = {};               // of the forward and of the adjoint system
  at::Tensor floor_, intensity_, cosine_, sine_;  // of the rotation, for the way back
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::sem::cayley
