// Baseline of sem.lazy_gate: no gate. Every call is solved from zero, whether its answer is known or not; on the way
// back the adjoint system is, too.
#include <ATen/ATen.h>

#include <algorithm>

#include "baselines/sem/common/edges_backward.h"
#include "src/component.h"

namespace twinbench::sem::lazy_gate {
namespace {

constexpr std::int64_t kMeantToBeReached = 24;  // iterations: fewer than the documented layer may take

// In fp64 it is the oracle: as near as that arithmetic comes, however many iterations it takes.
ConjugateGradients::Stop stop_of(const Setting& setting) {
  const bool oracle = setting.dtype == Dtype::kFp64;
  const auto most = static_cast<std::int64_t>(setting.option("most_iterations"));
  const bool all = oracle && most >= kMeantToBeReached;
  return {oracle ? 1e-13 : setting.option("tolerance"), all ? std::max(most, 8 * setting.size("dim") + 200) : most};
}

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        backward_(setting.backward()),
        calls_(setting.size("calls")),
        half_step_(setting.option("dt") / 2),
        stop_(stop_of(setting)),
        solver_(inputs, half_step_, stop_) {
    Baseline::reset();
  }

  void reset() override {
    cache_ = inputs_["cache"].clone(at::MemoryFormat::Contiguous);
    entry_ = inputs_["entry"].clone(at::MemoryFormat::Contiguous);
  }

  // What a call leaves behind is kept, as the others do; nothing here reads it.
  void run() override {
    solved_.clear(), nonfinite_.clear(), unconverged_.clear(), residuals_.clear(), of_field_.clear();
    iterations_.assign(static_cast<std::size_t>(2 * calls_), 0);
    theta_ = mix_ = at::Tensor();
    for (std::int64_t call = 0; call < calls_; ++call) {
      const Field given = from_planes(inputs_["field"].select(1, call)), x = run_call(call, given);
      if (backward_) run_adjoint(call, given, x);
    }
    const at::Tensor none = at::zeros({calls_}, inputs_["nodes"].options().dtype(at::kInt));
    const at::Tensor iterations = at::tensor(iterations_, at::kInt).to(none.device()).view({2, calls_});
    results_ = {{"skipped", none},
                {"gate_evaluations", none},
                {"discarded_rows", none},
                {"iterations", iterations},
                {"row_iterations", at::mul(iterations.select(0, 0), cache_.size(1))},
                {"unconverged_rows", at::cat(unconverged_)}};
    if (backward_) {
      results_.set("grad_field", at::stack(of_field_, 1));
      results_.set("grad_theta", theta_);
      results_.set("grad_mix", mix_);
    } else {
      results_.set("x", at::stack(solved_, 1));
      results_.set("nonfinite_rows", at::cat(nonfinite_));
      results_.set("largest_residual", at::cat(residuals_));
    }
  }

  NamedTensors outputs() override {
    NamedTensors all = results_;
    if (backward_) return all;
    all.set("cache", cache_);
    all.set("entry", entry_);
    return all;
  }

 private:
  Field run_call(std::int64_t call, const Field& given) {
    at::Tensor left;
    const Field x = solver_.solve(solver_.operate(given, -1), 1, iterations_[static_cast<std::size_t>(call)], &left);
    const at::Tensor finite = at::all(at::isfinite(at::add(x.re, x.im)), 1);
    solved_.push_back(planes_of(x));
    nonfinite_.push_back(at::sum(at::logical_not(finite), {0}, true, at::kInt));
    unconverged_.push_back(at::sum(at::gt(left, stop_.tolerance * stop_.tolerance), {0}, false, at::kInt));
    residuals_.push_back(at::sqrt(at::amax(at::cat({at::nan_to_num(left, 0, 0, 0), zero()}), {0})));
    cache_ = at::where(finite.unsqueeze(1), solved_.back(), cache_);
    if (given.re.size(0) > 0) entry_ = at::cat({one(), inputs_["keys"].select(0, call)});
    return x;
  }

  // C06, C02.
  void run_adjoint(std::int64_t call, const Field& given, const Field& x) {
    const Field gradient = from_planes(inputs_["grad_x"].select(1, call));
    const Field z = solver_.solve(gradient, -1, iterations_[static_cast<std::size_t>(calls_ + call)]);
    of_field_.push_back(planes_of(solver_.operate(z, 1)));
    const Field y{at::add(x.re, given.re), at::add(x.im, given.im)};
    const EdgeGradients edges = edges_backward(solver_, half_step_, inputs_["mix"], z, y);
    theta_ = theta_.defined() ? at::add(theta_, edges.theta) : edges.theta;
    mix_ = mix_.defined() ? at::add(mix_, edges.mix) : edges.mix;
  }

  at::Tensor zero() const { return at::zeros({1, 1}, cache_.options()); }
  at::Tensor one() const { return at::ones({1}, entry_.options()); }

  NamedTensors inputs_, results_;
  bool backward_;
  std::int64_t calls_;
  double half_step_;
  ConjugateGradients::Stop stop_;
  ConjugateGradients solver_;
  at::Tensor cache_, entry_;              // [2, rows, dim], [3]
  std::vector<std::int64_t> iterations_;  // [2, calls]: of the systems and of the adjoint ones
  std::vector<at::Tensor> solved_, nonfinite_, unconverged_, residuals_, of_field_;
  at::Tensor theta_, mix_;  // their gradients so far
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::sem::lazy_gate
