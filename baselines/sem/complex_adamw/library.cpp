// Library variant of sem.complex_adamw: LibTorch's operators over lists of tensors, as torch.optim's foreach has them.
#include "baselines/sem/common/adamw_steps.h"

namespace twinbench::sem::complex_adamw {
namespace {

class Library final : public HostDecidedSteps {
 public:
  Library(const NamedTensors& inputs, const Setting& setting) : HostDecidedSteps(inputs, setting) { reset(); }

 protected:
  // The lists that the operators take.
  void arranged() override {
    values_.clear(), firsts_.clear(), seconds_.clear(), imaginary_seconds_.clear();
    for (const auto& one : arena().parameters) {
      values_.push_back(one.value);
      firsts_.push_back(one.first);
      (is_imaginary(one) ? imaginary_seconds_ : seconds_).push_back(one.second);
    }
  }

  // Accumulated in fp64 as specified, for which ATen copies every tensor first: at 29.9 M parameters 90 ms of a step's
  // 217 on two cores. Norms in fp32 would take 7, miss the bound of the norm, and overflow from 1e19 on.
  at::Tensor norm_of(std::int64_t step) override {
    return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients(step), 2, at::kDouble)), 2);
  }
  void scale(std::int64_t step, double by) override { at::_foreach_mul_(gradients(step), by); }
  void clear(std::int64_t step) override { at::_foreach_zero_(gradients(step)); }

  void update(std::int64_t step, double rate) override {
    std::vector<at::Tensor> own, imaginary;  // gradients beside the lists of second moments
    for (const auto& one : arena().parameters)
      (is_imaginary(one) ? imaginary : own).push_back(one.gradients[static_cast<std::size_t>(step)]);
    at::_foreach_mul_(values_, decay(rate));
    at::_foreach_lerp_(firsts_, gradients(step), 1 - kBetaFirst);
    at::_foreach_mul_(seconds_, kBetaSecond);
    at::_foreach_addcmul_(seconds_, own, own, 1 - kBetaSecond);
    if (!imaginary.empty()) at::_foreach_addcmul_(imaginary_seconds_, imaginary, imaginary, 1 - kBetaSecond);
    std::vector<at::Tensor> roots = at::_foreach_sqrt(seconds_);
    at::_foreach_div_(roots, root_of_correction());
    at::_foreach_add_(roots, kAdamEpsilon);
    std::vector<at::Tensor> denominators;  // both parts of a pair have one
    for (std::size_t next = 0; const auto& one : arena().parameters)
      denominators.push_back(is_imaginary(one) ? denominators.back() : roots[next++]);
    at::_foreach_addcdiv_(values_, firsts_, denominators, -step_size(rate));
    for (std::size_t i = 0; has_noise() && i < denominators.size(); ++i)
      add_noise(arena().parameters[i], denominators[i], rate);
  }

 private:
  static bool is_imaginary(const Arena::Parameter& one) { return one.entry.kind == ParameterKind::kImaginary; }

  std::vector<at::Tensor> gradients(std::int64_t step) const {
    std::vector<at::Tensor> all;
    for (const auto& one : arena().parameters) all.push_back(one.gradients[static_cast<std::size_t>(step)]);
    return all;
  }

  std::vector<at::Tensor> values_, firsts_, seconds_, imaginary_seconds_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::sem::complex_adamw
