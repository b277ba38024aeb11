// The oracle's gradients against central differences in fp64: the baseline's backward is not trusted either.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/parity/subject.h"

namespace twinbench {

namespace {

constexpr double kStep = 1e-6, kAbsolute = 1e-5, kRelative = 1e-3;  // gradcheck's constants
constexpr int kAtLeast = 4;  // entries per gradient, whatever the time

// sum over outputs of <grad_output, output>, as a difference of two points: the sum itself would cancel digits away.
class Loss {
 public:
  Loss(const Subject& subject, const NamedTensors& inputs)
      : subject_(subject), setting_(oracle_setting(subject.setting)), inputs_(inputs) {
    setting_.input_case.pass = Pass::kForward;
    centre_ = outputs();
  }
  // Loss at the current inputs minus loss at the inputs of construction.
  double change() const {
    const NamedTensors now = outputs();
    double sum = 0;
    for (const auto& spec : output_specs(subject_.spec(), setting_)) {
      if (!inputs_.contains("grad_" + spec.name) || !now[spec.name].is_floating_point()) continue;
      sum += now[spec.name].sub(centre_[spec.name]).mul(inputs_["grad_" + spec.name]).sum().item().toDouble();
    }
    return sum;
  }

 private:
  NamedTensors outputs() const {
    const auto runnable = subject_.component.make(Variant::kBaseline, inputs_, setting_);
    runnable->run();
    return copied_outputs(*runnable);
  }
  const Subject& subject_;
  Setting setting_;
  const NamedTensors& inputs_;
  NamedTensors centre_;
};

}  // namespace

void check_gradient(const Subject& subject, CheckResult& result) {
  if (const auto& options = subject.setting.input_case.options;
      options.count("not_differentiable") && options.at("not_differentiable") != 0)
    return result.skip("the case's inputs lie on a kink by design: central differences see both sides of it");
  const NamedTensors inputs = placed_inputs(subject.generated, Dtype::kFp64, c10::Device(c10::DeviceType::CPU));
  const Loss loss(subject, inputs);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto gradients = subject.outputs_declared();
  double share = 0;
  for (const auto& spec : gradients) {
    share += subject.options.gradient_seconds / static_cast<double>(gradients.size());
    const std::string name = spec.name.substr(std::string("grad_").size());
    if (spec.name.rfind("grad_", 0) != 0 || !inputs.contains(name))
      return result.fail("gradient '" + spec.name + "' names no input: it must be grad_<input>");
    double* const values = inputs[name].mutable_data_ptr<double>();
    const at::Tensor analytic_tensor = subject.reference.oracle()[spec.name].contiguous();
    if (analytic_tensor.sizes() != inputs[name].sizes())
      return result.fail("'" + spec.name + "' has another shape than its input");
    const double* const analytic = analytic_tensor.const_data_ptr<double>();
    const std::int64_t count = inputs[name].numel(),
                       samples = std::min<std::int64_t>(count, subject.options.gradient_samples);
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      if (sample >= kAtLeast && seconds() > share) break;
      // A golden-ratio walk spreads any number of samples evenly; few entries are taken one by one.
      const std::int64_t entry =
          samples == count
              ? sample
              : static_cast<std::int64_t>(std::fmod(0.5 + 0.6180339887498949 * static_cast<double>(sample), 1.0) *
                                          static_cast<double>(count));
      const double original = values[entry];
      values[entry] = original + kStep;
      const double up = loss.change() / kStep;
      values[entry] = original - kStep;
      const double down = -loss.change() / kStep;
      values[entry] = original;
      const double central = 0.5 * (up + down), allowed = kAbsolute + kRelative * std::abs(central);
      // At a kink (relu, clamp) the two one-sided slopes differ and any value between them is a gradient.
      const bool at_kink = std::abs(up - down) > allowed && analytic[entry] >= std::min(up, down) - allowed &&
                           analytic[entry] <= std::max(up, down) + allowed;
      if (std::abs(analytic[entry] - central) <= allowed || at_kink) continue;
      return result.fail("'" + spec.name + "' entry " + std::to_string(entry) + ": the oracle says " +
                         std::to_string(analytic[entry]) + ", central differences say " + std::to_string(central));
    }
  }
}

}  // namespace twinbench
