// Central differences along directions and at single entries.
#include "harness/parity/gradient_check.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/view_as_real.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "harness/compare/inputs.h"
#include "harness/runner/share.h"

namespace twinbench {

namespace {

constexpr double kStep = 1e-6, kAbsolute = 1e-5, kRelative = 1e-3;  // gradcheck's constants
constexpr int kHalvings = 128;  // slopes looked at to find the entry that makes a direction disagree

bool has_slope(const at::Tensor& tensor) { return tensor.is_floating_point() || tensor.is_complex(); }

// Real and imaginary parts as numbers of their own: the gradient dL/dx + i dL/dy is then each one's derivative, and
// Re(conj(a) b) a plain product.
at::Tensor real_parts(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
}

// sum over outputs of <grad_output, output>, as a difference of two points: the sum itself would cancel digits away.
class Loss {
 public:
  Loss(const Component& component, const Setting& setting, const NamedTensors& inputs)
      : component_(component), setting_(exact_setting(setting)), inputs_(inputs) {
    setting_.input_case.pass = Pass::kForward;
    centre_ = outputs();
  }
  bool is_finite() const {
    for (const auto& [name, tensor] : centre_)
      if (inputs_.contains("grad_" + name) && has_slope(tensor) && !at::isfinite(tensor).all().item<bool>())
        return false;
    return true;
  }
  // Loss at the current inputs minus loss at the inputs of construction.
  double change() const {
    const NamedTensors now = outputs();
    double sum = 0;
    for (const auto& spec : output_specs(component_.spec, setting_)) {
      if (!inputs_.contains("grad_" + spec.name) || !has_slope(now[spec.name])) continue;
      sum += real_parts(now[spec.name].sub(centre_[spec.name]))
                 .mul(real_parts(inputs_["grad_" + spec.name]))
                 .sum()
                 .item()
                 .toDouble();
    }
    return sum;
  }

 private:
  NamedTensors outputs() const {
    const auto runnable = component_.make(Variant::kBaseline, inputs_, setting_);
    run_afresh(*runnable);
    return copied_outputs(*runnable);
  }
  const Component& component_;
  Setting setting_;
  const NamedTensors& inputs_;
  NamedTensors centre_;
};

// One input and its gradient, entry by entry.
class Slopes {
 public:
  // `late`: whether a direction that disagrees, as it does across a kink, may no longer be looked into.
  Slopes(const Loss& loss, at::Tensor& input, const at::Tensor& gradient, std::uint64_t seed,
         std::function<bool()> late)
      : loss_(loss),
        values_(input.mutable_data_ptr<double>()),
        gradient_(gradient.contiguous()),
        analytic_(gradient_.const_data_ptr<double>()),
        count_(input.numel()),
        seed_(seed),
        late_(std::move(late)) {}

  std::int64_t count() const { return count_; }

  // An entry that disagrees by itself, found along direction `number`; none where the slope agrees.
  std::optional<std::int64_t> wrong_along(std::uint64_t number) const {
    int looks = kHalvings;
    return wrong_entry(number, 0, count_, looks);
  }
  bool agrees_at(std::int64_t entry) const { return agrees(0, entry, entry + 1); }

  std::string text(std::int64_t entry) const {
    return "entry " + std::to_string(entry) + ": the oracle says " + std::to_string(analytic_[entry]) +
           ", central differences say " + std::to_string(central_);
  }

 private:
  double sign(std::uint64_t number, std::int64_t entry) const {  // of the direction at that entry
    std::uint64_t word =
        (static_cast<std::uint64_t>(entry) + 1) * 0x9E3779B97F4A7C15ull + (seed_ + number) * 0xD6E8FEB86659FD93ull;
    word = (word ^ (word >> 32)) * 0xD6E8FEB86659FD93ull;
    return (word >> 63) != 0 ? 1.0 : -1.0;
  }

  std::optional<std::int64_t> wrong_entry(std::uint64_t number, std::int64_t first, std::int64_t last,
                                          int& looks) const {
    if (--looks < 0 || agrees(number, first, last)) return std::nullopt;
    if (last - first == 1) return first;
    if (late_()) return std::nullopt;
    const std::int64_t middle = first + (last - first) / 2;
    const auto wrong = wrong_entry(number, first, middle, looks);
    return wrong ? wrong : wrong_entry(number, middle, last, looks);
  }

  double slope(std::uint64_t number, std::int64_t first, std::int64_t last, double step) const {
    const std::vector<double> original(values_ + first, values_ + last);
    for (std::int64_t i = first; i < last; ++i) values_[i] += step * sign(number, i);
    const double slope = loss_.change() / step;
    std::copy(original.begin(), original.end(), values_ + first);
    return slope;
  }

  bool agrees(std::uint64_t number, std::int64_t first, std::int64_t last) const {
    double analytic = 0;
    for (std::int64_t i = first; i < last; ++i) analytic += sign(number, i) * analytic_[i];
    const double up = slope(number, first, last, kStep), down = slope(number, first, last, -kStep);
    central_ = 0.5 * (up + down) * (last - first == 1 ? sign(number, first) : 1.0);
    const double central = 0.5 * (up + down), allowed = kAbsolute + kRelative * std::abs(central);
    // At a kink (relu, clamp) the two one-sided slopes differ and any value between them is a gradient.
    const bool at_kink = std::abs(up - down) > allowed && analytic >= std::min(up, down) - allowed &&
                         analytic <= std::max(up, down) + allowed;
    return std::abs(analytic - central) <= allowed || at_kink;
  }

  const Loss& loss_;
  double* values_;
  at::Tensor gradient_;
  const double* analytic_;
  std::int64_t count_;
  std::uint64_t seed_;
  std::function<bool()> late_;
  mutable double central_ = 0;  // of the last slope, for the message
};

// A golden-ratio walk spreads any number of samples evenly; few entries are taken one by one.
std::int64_t sampled_entry(std::int64_t sample, std::int64_t samples, std::int64_t count) {
  if (samples == count) return sample;
  return static_cast<std::int64_t>(std::fmod(0.5 + 0.6180339887498949 * static_cast<double>(sample), 1.0) *
                                   static_cast<double>(count));
}

}  // namespace

void check_gradient(const Component& component, const Setting& setting, const NamedTensors& generated,
                    const NamedTensors& oracle_gradients, const ParityOptions& options, CheckResult& result) {
  NamedTensors inputs = placed_inputs(generated, Dtype::kFp64, c10::Device(c10::DeviceType::CPU));
  const Loss loss(component, setting, inputs);
  if (!loss.is_finite()) return result.skip("an output is not finite with these inputs: nothing has a slope");
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const auto gradients = output_specs(component.spec, setting);
  double share = 0;
  for (const auto& spec : gradients) {
    share += options.gradient_seconds / static_cast<double>(gradients.size());
    if (spec.tolerance.kind == Tolerance::Kind::kMeasured) continue;  // a count, which has no slope
    const std::string name = spec.name.substr(std::string("grad_").size());
    if (spec.name.rfind("grad_", 0) != 0 || !inputs.contains(name))
      return result.fail("gradient '" + spec.name + "' names no input: it must be grad_<input>");
    at::Tensor input = real_parts(inputs[name]);
    const at::Tensor gradient = real_parts(oracle_gradients[spec.name]);
    if (gradient.sizes() != input.sizes()) return result.fail("'" + spec.name + "' has another shape than its input");
    if (input.numel() == 0) continue;
    const auto late = [&] { return seconds() > share; };
    const Slopes slopes(loss, input, gradient, name_hash(name), late);
    const std::int64_t count = slopes.count(), samples = std::min<std::int64_t>(count, options.gradient_samples);
    for (int direction = 0; direction < (late() ? 1 : options.gradient_directions); ++direction)
      if (const auto wrong = slopes.wrong_along(static_cast<std::uint64_t>(direction)))
        return result.fail("'" + spec.name + "' " + slopes.text(*wrong));
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      if (late()) break;
      const std::int64_t entry = sampled_entry(sample, samples, count);
      if (!slopes.agrees_at(entry)) return result.fail("'" + spec.name + "' " + slopes.text(entry));
    }
  }
}

}  // namespace twinbench
