// Baseline of energy_flow.optimizer: a loop over the tensors, each with a finite test, a norm, a scaling and an update
// of its own; two blocking reads a tensor.
#include "baselines/energy_flow/common/windows_in_turn.h"

namespace twinbench::energy_flow::optimizer {
namespace {

class Baseline final : public WindowsInTurn {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : WindowsInTurn(inputs, setting),
        monitors_(setting.on("gradient_monitoring")),
        clips_first_(setting.on("documented_order")) {
    reset();
  }

 protected:
  void arranged() override { left_ = false; }

  void take(std::int64_t window, double factor, std::int64_t micro_steps) override {
    if (clips_first_)
      clip_then_look(window);
    else
      WindowsInTurn::take(window, factor, micro_steps);
  }

  double norm_of(std::int64_t window) override {
    std::vector<at::Tensor> norms;
    for (const at::Tensor& gradient : gradients(window)) {
      if (!at::all(at::isfinite(gradient)).item<bool>()) ++bad_tensors_;
      norms.push_back(at::linalg_vector_norm(gradient, 2, at::OptionalIntArrayRef(), false, at::kDouble));
      largest_norm_ = std::max(largest_norm_, norms.back().item<double>());
      if (monitors_) monitor(gradient);
    }
    return at::linalg_vector_norm(at::stack(norms), 2).item<double>();
  }

  void scale(std::int64_t window, double by) override {
    for (const at::Tensor& gradient : gradients(window)) gradient.mul_(by);
  }

  void update(std::int64_t window) override {
    const auto n = static_cast<double>(applied());
    const double root = std::sqrt(1 - std::pow(kBetaSecond, n)), step = rate() / (1 - std::pow(kBetaFirst, n));
    for (std::size_t i = 0; i < gradients(window).size(); ++i) {
      const at::Tensor &gradient = gradients(window)[i], &first = arena().first[i], &second = arena().second[i];
      arena().value[i].mul_(1 - rate() * weight_decay());
      first.lerp_(gradient, 1 - kBetaFirst);
      second.mul_(kBetaSecond);
      second.addcmul_(gradient, gradient, 1 - kBetaSecond);
      const at::Tensor denominator = at::sqrt(second).div_(root).add_(kAdamEpsilon);
      arena().value[i].addcdiv_(first, denominator, -step);
    }
  }

  void clear(std::int64_t window) override {
    for (const at::Tensor& gradient : gradients(window)) gradient.zero_();
  }

 private:
  // The documents' order: all gradients are scaled, by NaN where the norm is one, and looked at afterwards. The first
  // bad tensor is cleared and the window left; what else is bad stays, and the next window adds to it.
  void clip_then_look(std::int64_t window) {
    if (left_ && window > 0) {
      for (std::size_t i = 0; i < gradients(window).size(); ++i) gradients(window)[i].add_(gradients(window - 1)[i]);
      left_ = false;
    }
    std::vector<at::Tensor> norms;
    for (const at::Tensor& gradient : gradients(window))
      norms.push_back(at::linalg_vector_norm(gradient, 2, at::OptionalIntArrayRef(), false, at::kDouble));
    const auto norm = at::linalg_vector_norm(at::stack(norms), 2).item<double>();
    const double by = clip() / (norm + kClipEpsilon), coefficient = by > 1 ? 1 : by;
    scale(window, coefficient);
    for (const at::Tensor& gradient : gradients(window)) {
      if (at::all(at::isfinite(gradient)).item<bool>()) continue;
      gradient.zero_();
      left_ = true;
      return note(WindowStatus::kNotFinite, norm, 0);
    }
    apply(window, norm, coefficient);
  }

  // Detailed gradient monitoring: three more figures a tensor, read for a log.
  void monitor(const at::Tensor& gradient) {
    if (gradient.numel() == 0) return;
    widest_range_ = std::max(widest_range_, at::max(gradient).item<double>() - at::min(gradient).item<double>());
    largest_mean_ = std::max(largest_mean_, std::abs(at::mean(gradient).item<double>()));
  }

  bool monitors_, clips_first_;
  bool left_ = false;  // bad gradients, in the window before
  // What the log would say.
  std::int64_t bad_tensors_ = 0;
  double largest_norm_ = 0, widest_range_ = 0, largest_mean_ = 0;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::optimizer
