// The check of what a component carries from run to run: several runs go on from each other's state as the oracle's do,
// on inputs that change in between; reset() then gives the first run again.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <vector>

#include "harness/compare/compare.h"
#include "harness/compare/inputs.h"
#include "harness/parity/later_step.h"
#include "harness/parity/rounding_decisions.h"
#include "harness/parity/subject.h"
#include "harness/parity/trials.h"
#include "harness/runner/share.h"

namespace twinbench {

namespace {

constexpr std::uint64_t kTrials = 4;

// Of the inputs, one that run() advances, which comes out under the same name.
bool is_state(const ComponentSpec& spec, const std::string& output) {
  const auto& inputs = spec.signature.inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const InputSpec& one) { return one.role == Role::kState && one.name == output; });
}

// What the runs find by turns: the case's inputs, and those of the next seed where run() reads them each time.
std::array<NamedTensors, 2> contents_by_turns(const Subject& subject) {
  std::array<NamedTensors, 2> turns{subject.generated, subject.generated};
  for (const auto& [name, other] : subject.shared.other_inputs()) {
    if (!is_read_by_run(subject, name)) continue;
    if (!other.sizes().equals(subject.generated[name].sizes())) return {subject.generated, subject.generated};
    turns[1].set(name, other);
  }
  return turns;
}

// What came of a series of runs; of its last one also what it found.
struct Series {
  NamedTensors before, after;
};

// `after_reset`, where it is given: which bits differ from the first run's when the series has ended and starts over.
Series series_of(const Subject& subject, Variant variant, const Setting& setting,
                 const std::array<NamedTensors, 2>& turns, int runs, std::string* after_reset = nullptr) {
  const NamedTensors inputs = placed_inputs(turns[0], setting.dtype, setting.device);
  const auto write_for = [&](int run) {
    NamedTensors contents;
    for (const auto& name : inputs_read_by_run(subject.spec(), subject.setting))
      contents.set(name, turns[run % 2][name]);
    overwrite_inputs(inputs, contents, setting);
  };
  const auto runnable = subject.component.make(variant, inputs, setting);
  for (int run = 0; run + 1 < runs; ++run) {
    runnable->run();
    write_for(run + 1);
  }
  Series series{copied_outputs(*runnable), {}};
  runnable->run();
  series.after = copied_outputs(*runnable);
  if (after_reset) {
    write_for(0);
    run_afresh(*runnable);
    *after_reset = subject.difference(copied_outputs(*runnable));
  }
  return series;
}

// A step is judged by its length, whatever the class says of the values: theirs allows more than a run moves them by.
constexpr double kOfStep = 0.25, kOfBaselinesStep = 4;

// Empty, or how far the last run's step is from the right one. `moved`: what close decisions may change of it.
std::string wrong_step(const std::string& name, const Series& right, const Series& baseline, const Series& candidate,
                       double moved) {
  const auto numbers = [&](const NamedTensors& outputs) {
    const at::Tensor values = outputs[name].cpu();
    return (values.is_complex() ? at::view_as_real(values.resolve_conj()) : values).to(at::kDouble);
  };
  const auto step = [&](const Series& of) { return numbers(of.after) - numbers(of.before); };
  const auto length_of = [](const at::Tensor& values) {
    return at::nan_to_num(values, 0.0, 0.0, 0.0).norm().item<double>();
  };
  const at::Tensor expected = step(right);
  const double length = length_of(expected), off = length_of(step(candidate) - expected);
  const double allowed = std::max(kOfStep * length, kOfBaselinesStep * length_of(step(baseline) - expected)) +
                         2 * moved + 4 * kLastPlace * length_of(numbers(right.after));
  return off <= allowed ? "" : c10::str("its last step is off by ", off, " (L2), the right one is ", length, " long");
}

// The declared outputs with their bounds as they hold for the inputs of the first run or, where that is more, for those
// that the last one finds: the bound of a run that starts from a larger field is larger.
std::vector<OutputSpec> outputs_of_last_run(const Subject& subject, NamedTensors found, const NamedTensors& states,
                                            CheckResult& result) {
  for (const auto& input : subject.spec().signature.inputs)
    if (input.role == Role::kState) go_on_from(found, input.name, states);
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

void fail_reset(int runs, const std::string& other, CheckResult& result) {
  result.fail("behind " + std::to_string(runs) + " runs reset() does not give back the first: other bits in " + other);
}

// Nothing ends when the series that are followed do: one run of a longer series, from the state it found.
void check_later_run(const Subject& subject, const std::array<NamedTensors, 2>& turns, CheckResult& result) {
  const int runs = 5 + static_cast<int>(name_hash(subject.options.sample + " later " + subject.drawn_by()) % 12);
  std::string after_reset;
  const Series series = series_of(subject, subject.variant, subject.setting, turns, runs, &after_reset);
  const std::string which = "run " + std::to_string(runs) + ", from the state that it found: ";
  if (!after_reset.empty()) return fail_reset(runs, after_reset, result);
  const auto wrong_step_of = [&](const Series& of) {
    return wrong_step_from(subject.component, subject.setting, turns[(runs - 1) % 2], of.before, of.after);
  };
  const std::string wrong = wrong_step_of(series);
  // A cache's answer hangs on more than the states that come out: the baseline's does not follow from them either.
  if (!wrong.empty() && wrong_step_of(series_of(subject, Variant::kBaseline, subject.setting, turns, runs)).empty())
    result.fail(which + wrong);
}

}  // namespace

void check_carried(const Subject& subject, CheckResult& result) {
  const int runs = 2 + static_cast<int>(name_hash(subject.options.sample + " runs " + subject.drawn_by()) % 3);
  const std::string which = "run " + std::to_string(runs) + " of one state: ";
  const std::array<NamedTensors, 2> turns = contents_by_turns(subject);
  const auto right = [&] {
    return series_of(subject, Variant::kBaseline, oracle_setting(subject.setting), turns, runs);
  };
  Series oracle;
  bool close = false;
  {
    RoundingRecorder recorder;
    oracle = right();
    close = recorder.log.any_close && sets_decisions_aside(subject.setting);
  }
  const Tainted tainted = close ? tainted_by_decisions([&] { return right().after; }, oracle.after, 1) : Tainted();
  std::string after_reset;
  const Series baseline = series_of(subject, Variant::kBaseline, subject.setting, turns, runs),
               candidate = series_of(subject, subject.variant, subject.setting, turns, runs, &after_reset);
  if (!after_reset.empty()) return fail_reset(runs, after_reset, result);
  // The baseline's own error may be a lucky one: in a later run other operands round to the other side. Of thousands of
  // operands some do where inputs are off by so much. A run that is left out is off by more than kNearMiss.
  const double share = rounds_values(subject.setting) ? 64 * kLastPlace : kLastPlace;
  const auto honest_errors = [&] {
    Setting on_cpu = subject.setting;
    on_cpu.device = c10::Device(c10::DeviceType::CPU);
    Distances apart(subject.outputs_declared(), oracle.after);
    for (std::uint64_t trial = 1; trial <= kTrials; ++trial) {
      const std::array<NamedTensors, 2> moved{moved_inputs(turns[0], trial, share),
                                              moved_inputs(turns[1], trial, share)};
      apart.add(series_of(subject, Variant::kBaseline, on_cpu, moved, runs).after);
    }
    return apart.root_mean_square();
  };
  NamedTensors honest;
  for (OutputSpec spec : outputs_of_last_run(subject, turns[(runs - 1) % 2], oracle.before, result)) {
    const std::string& name = spec.name;
    if (spec.tolerance.kind == Tolerance::Kind::kMeasured) continue;
    if (!candidate.after.contains(name) || candidate.after[name].sizes() != baseline.after[name].sizes())
      return result.fail(which + "output '" + name + "' is missing, or of another shape");
    const Moved moved = close ? tainted.moved.at(name) : Moved();
    if (spec.advancing)
      if (const auto wrong = wrong_step(name, oracle, baseline, candidate, moved.distance); !wrong.empty())
        return result.fail(which + "output '" + name + "': " + wrong);
    if (close && sums_items(spec)) {
      const auto wider = widened(spec, oracle.after[name], moved, subject.setting.dtype);
      if (!wider) continue;
      spec = *wider;
    }
    // Nobody knows which operands of a later run round to the other side: where any do, the class alone bounds what is
    // computed anew in each run, and a state whose step is judged. What else goes on from run to run is held to the
    // baseline's own error.
    const bool flips = rounds_values(subject.setting) && (spec.advancing || !is_state(subject.spec(), name));
    const at::Tensor unsettled =
        flips || bounded_by_class_alone(subject.setting) ? at::ones_like(oracle.after[name], at::kBool) : at::Tensor();
    const auto compared_with = [&](const at::Tensor& errors) {
      return compare(spec, oracle.after[name], baseline.after[name], candidate.after[name], subject.setting.dtype,
                     unsettled, errors);
    };
    Comparison compared = compared_with({});
    if (compared.judgement == Judgement::kRejected && compared.worst_ratio > kGross &&
        compared.worst_ratio <= kNearMiss) {
      if (honest.size() == 0) honest = honest_errors();
      if (honest.contains(name)) compared = compared_with(honest[name]);
    }
    const bool exact = spec.tolerance.kind == Tolerance::Kind::kExact;
    if (compared.judgement == Judgement::kRejected && (exact || compared.worst_ratio > kGross))
      return result.fail(which + "output '" + name + "': " + compared.reason);
  }
  if (result.verdict == CheckVerdict::kPass) check_later_run(subject, turns, result);
}

}  // namespace twinbench
