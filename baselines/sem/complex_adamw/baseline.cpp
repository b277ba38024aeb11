// Baseline of sem.complex_adamw: a loop over the tensors, one operator and one pass over memory a step of the rule.
#include "baselines/sem/common/adamw_steps.h"

namespace twinbench::sem::complex_adamw {
namespace {

class Baseline final : public HostDecidedSteps {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting) : HostDecidedSteps(inputs, setting) { reset(); }

 protected:
  at::Tensor norm_of(std::int64_t step) override {
    std::vector<at::Tensor> norms;
    for (const auto& one : arena().parameters)
      norms.push_back(at::linalg_vector_norm(gradient(one, step), 2, at::OptionalIntArrayRef(), false, at::kDouble));
    return at::linalg_vector_norm(at::stack(norms), 2);
  }

  void scale(std::int64_t step, double by) override {
    for (const auto& one : arena().parameters) gradient(one, step).mul_(by);
  }

  void update(std::int64_t step, double rate) override {
    const auto& all = arena().parameters;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].entry.kind == ParameterKind::kPlain) update_plain(all[i], gradient(all[i], step), rate);
      if (all[i].entry.kind == ParameterKind::kReal) update_pair(all[i], all[i + 1], step, rate);
    }
  }

  void clear(std::int64_t step) override {
    for (const auto& one : arena().parameters) gradient(one, step).zero_();
  }

 private:
  static at::Tensor gradient(const Arena::Parameter& of, std::int64_t step) {
    return of.gradients[static_cast<std::size_t>(step)];
  }

  void update_plain(const Arena::Parameter& one, const at::Tensor& gradient, double rate) {
    one.value.mul_(decay(rate));
    one.first.mul_(kBetaFirst);
    one.first.add_(gradient, 1 - kBetaFirst);
    one.second.mul_(kBetaSecond);
    one.second.addcmul_(gradient, gradient, 1 - kBetaSecond);
    move(one, denominator_of(one), rate);
  }

  void update_pair(const Arena::Parameter& real, const Arena::Parameter& imaginary, std::int64_t step, double rate) {
    for (const auto* const part : {&real, &imaginary}) {
      part->value.mul_(decay(rate));
      part->first.mul_(kBetaFirst);
      part->first.add_(gradient(*part, step), 1 - kBetaFirst);
    }
    const at::Tensor g = gradient(real, step), h = gradient(imaginary, step);
    real.second.mul_(kBetaSecond);
    real.second.add_(at::add(at::mul(g, g), at::mul(h, h)), 1 - kBetaSecond);
    const at::Tensor denominator = denominator_of(real);
    for (const auto* const part : {&real, &imaginary}) move(*part, denominator, rate);
  }

  at::Tensor denominator_of(const Arena::Parameter& one) const {
    return at::div(at::sqrt(one.second), root_of_correction()).add_(kAdamEpsilon);
  }

  void move(const Arena::Parameter& one, const at::Tensor& denominator, double rate) {
    one.value.addcdiv_(one.first, denominator, -step_size(rate));
    if (has_noise()) add_noise(one, denominator, rate);
  }
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::sem::complex_adamw
