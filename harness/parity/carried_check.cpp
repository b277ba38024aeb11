// The check of what a component carries from run to run: several runs go on from each other's state as the oracle's do.
#include <ATen/ops/ones_like.h>

#include <algorithm>
#include <array>
#include <vector>

#include "harness/compare/compare.h"
#include "harness/parity/rounding_decisions.h"
#include "harness/parity/subject.h"
#include "harness/parity/trials.h"
#include "harness/runner/share.h"

namespace twinbench {

namespace {

// A state's error grows with the runs, and discrete answers may follow: what is looked for is work that is not done.
constexpr double kGross = 8;
constexpr std::uint64_t kTrials = 4;

// Of the inputs, one that run() advances, which comes out under the same name.
bool is_state(const ComponentSpec& spec, const std::string& output) {
  const auto& inputs = spec.signature.inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const InputSpec& one) { return one.role == Role::kState && one.name == output; });
}

// The declared outputs with their bounds as they hold for the inputs of the first run or, where that is more, for those
// that the last one finds: the bound of a run that starts from a larger field is larger.
std::vector<OutputSpec> outputs_of_last_run(const Subject& subject, const NamedTensors& states, CheckResult& result) {
  NamedTensors found = subject.generated;
  for (const auto& [name, state] : states)
    if (is_state(subject.spec(), name) && found.contains(name) && state.sizes().equals(found[name].sizes()))
      found.set(name, state.to(found[name].options()));
  std::vector<OutputSpec> outputs = subject.outputs_declared(), last = output_specs(subject.spec(), subject.setting);
  if (const std::string wrong = scale_bounds(subject.spec(), subject.setting, found, last); !wrong.empty())
    result.fail_comparison("invalid case: on the inputs of the last run: " + wrong);
  const auto place_of = [](Tolerance& tolerance) {
    return std::array{&tolerance.fp32, &tolerance.bf16, &tolerance.fp16, &tolerance.tf32};
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto first_bounds = place_of(outputs[i].tolerance), last_bounds = place_of(last[i].tolerance);
    for (std::size_t mode = 0; mode < first_bounds.size(); ++mode) {
      first_bounds[mode]->relative = std::max(first_bounds[mode]->relative, last_bounds[mode]->relative);
      first_bounds[mode]->absolute = std::max(first_bounds[mode]->absolute, last_bounds[mode]->absolute);
    }
  }
  return outputs;
}

}  // namespace

void check_carried(const Subject& subject, CheckResult& result) {
  const int runs = 2 + static_cast<int>(name_hash(subject.options.sample + " runs " + subject.drawn_by()) % 3);
  NamedTensors before_last;  // as the run before the last one left them
  const auto carried = [&](Variant variant, const Setting& setting, const NamedTensors& generated) {
    const NamedTensors inputs = placed_inputs(generated, setting.dtype, setting.device);
    const auto runnable = subject.component.make(variant, inputs, setting);
    for (int run = 0; run < runs; ++run) {
      if (run + 1 == runs && setting.dtype == Dtype::kFp64) before_last = copied_outputs(*runnable);
      runnable->run();
    }
    return copied_outputs(*runnable);
  };
  const auto right = [&] { return carried(Variant::kBaseline, oracle_setting(subject.setting), subject.generated); };
  NamedTensors oracle;
  bool close = false;
  {
    RoundingRecorder recorder;
    oracle = right();
    close = recorder.log.any_close && sets_decisions_aside(subject.setting);
  }
  const NamedTensors baseline = carried(Variant::kBaseline, subject.setting, subject.generated),
                     candidate = carried(subject.variant, subject.setting, subject.generated);
  // The baseline's own error may be a lucky one: in a later run other operands round to the other side. Of thousands of
  // operands some do where inputs are off by so much. A run that is left out is off by more than kNearMiss.
  const double share = rounds_values(subject.setting) ? 64 * kLastPlace : kLastPlace;
  const auto honest_errors = [&] {
    Setting on_cpu = subject.setting;
    on_cpu.device = c10::Device(c10::DeviceType::CPU);
    Distances apart(subject.outputs_declared(), oracle);
    for (std::uint64_t trial = 1; trial <= kTrials; ++trial)
      apart.add(carried(Variant::kBaseline, on_cpu, moved_inputs(subject.generated, trial, share)));
    return apart.root_mean_square();
  };
  NamedTensors honest;
  const Tainted tainted = close ? tainted_by_decisions(right, oracle, 1) : Tainted();
  const std::string which = "run " + std::to_string(runs) + " of one state: ";
  for (OutputSpec spec : outputs_of_last_run(subject, before_last, result)) {
    if (spec.tolerance.kind == Tolerance::Kind::kMeasured) continue;
    if (!candidate.contains(spec.name) || candidate[spec.name].sizes() != baseline[spec.name].sizes())
      return result.fail(which + "output '" + spec.name + "' is missing, or of another shape");
    if (close && sums_items(spec)) {
      const auto wider = widened(spec, oracle[spec.name], tainted.moved.at(spec.name), subject.setting.dtype);
      if (!wider) continue;
      spec = *wider;
    }
    // Nobody knows which operands of a later run round to the other side: where any do, the class alone bounds what is
    // computed anew in each run. What goes on from run to run is held to the baseline's own error.
    const bool flips = rounds_values(subject.setting) && !is_state(subject.spec(), spec.name);
    const at::Tensor unsettled =
        flips || bounded_by_class_alone(subject.setting) ? at::ones_like(oracle[spec.name], at::kBool) : at::Tensor();
    const auto compared_with = [&](const at::Tensor& errors) {
      return compare(spec, oracle[spec.name], baseline[spec.name], candidate[spec.name], subject.setting.dtype,
                     unsettled, errors);
    };
    Comparison compared = compared_with({});
    if (compared.judgement == Judgement::kRejected && compared.worst_ratio > kGross &&
        compared.worst_ratio <= kNearMiss) {
      if (honest.size() == 0) honest = honest_errors();
      if (honest.contains(spec.name)) compared = compared_with(honest[spec.name]);
    }
    const bool exact = spec.tolerance.kind == Tolerance::Kind::kExact;
    if (compared.judgement == Judgement::kRejected && (exact || compared.worst_ratio > kGross))
      return result.fail(which + "output '" + spec.name + "': " + compared.reason);
  }
}

}  // namespace twinbench
