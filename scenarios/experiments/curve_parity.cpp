// Kind `curve_parity`: losses and named outputs of every step, optimized against baseline, within a tolerance.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/parity/rounding_decisions.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"
#include "src/stored_states.h"

namespace twinbench::experiments::curve_parity {
namespace {

// Values of this step by name, on the CPU, in fp64 or as the whole numbers that they are: losses and outputs by one
// name space. `key` gives the names.
NamedTensors values_of(TrainingRun& run, const ScenarioConfig& config, const std::string& key) {
  const auto losses = run.losses();
  const auto outputs = run.outputs();
  NamedTensors values;
  for (const auto& name : config.texts(key)) {
    if (const auto loss = losses.find(name); loss != losses.end())
      values.set(name, at::full({1}, loss->second, at::kDouble));
    else if (outputs.contains(name))
      values.set(
          name,
          outputs[name].detach().to(at::kCPU, outputs[name].is_floating_point() ? at::kDouble : at::kLong).clone());
    else {
      std::vector<std::string> known;
      for (const auto& entry : losses) known.push_back(entry.first);
      for (const auto& entry : outputs) known.push_back(entry.first);
      throw Error(ErrorKind::kUnknownName, config.file + ": " + key, name,
                  "the run has no loss or output of that name" + did_you_mean(name, known));
    }
  }
  return values;
}

// Largest |a - b| / (absolute + relative * max(|a|, |b|)) over all curves; NaN and Inf must stand at the same places,
// whole numbers must be equal. Without what is set aside.
double worst_ratio(const NamedTensors& a, const NamedTensors& b, const ScenarioConfig& config,
                   const NamedTensors& aside = {}) {
  double worst = 0;
  for (const auto& [name, left] : a) {
    const auto& right = b[name];
    if (left.sizes() != right.sizes() || left.scalar_type() != right.scalar_type()) return kInfinite;
    auto equal = left.eq(right).logical_or(left.isnan().logical_and(right.isnan()));
    if (aside.contains(name)) equal = equal.logical_or(aside[name]);
    if (!left.is_floating_point()) {
      if (!equal.all().item<bool>()) return kInfinite;
      continue;
    }
    const auto allowed = at::maximum(left.abs(), right.abs()).mul(config.real("relative")).add(config.real("absolute"));
    const auto ratio = left.sub(right).abs().div(allowed).masked_fill(equal, 0.0).nan_to_num(kInfinite, kInfinite);
    if (ratio.numel() > 0) worst = std::max(worst, std::min(kInfinite, ratio.max().item<double>()));
  }
  return worst;
}

// How many tolerances the curve that moves least has moved from its first step: parity of curves that stand still, or
// are no longer finite, proves nothing.
double least_travel(const NamedTensors& first, const NamedTensors& last, const ScenarioConfig& config) {
  double least = kInfinite;
  for (const auto& [name, tensor] : first) {
    const auto finite = at::isfinite(tensor).all().item<bool>() && at::isfinite(last[name]).all().item<bool>();
    least = std::min(least, finite ? worst_ratio({{name, tensor}}, {{name, last[name]}}, config) : 0.0);
  }
  return least;
}

// The smallest distance, max |a - b|, of the outputs that must differ, each from the next one of its pair.
double least_distance(TrainingRun& run, const ScenarioConfig& config) {
  const auto names = config.texts("apart");
  const auto values = values_of(run, config, "apart");
  double least = kInfinite;
  for (std::size_t i = 0; i + 1 < names.size(); i += 2) {
    const at::Tensor &a = values[names[i]], &b = values[names[i + 1]];
    if (a.sizes() != b.sizes())
      throw Error(ErrorKind::kBadShape, config.file + ": apart", names[i] + " and " + names[i + 1],
                  "two outputs of one shape");
    const double distance = a.numel() > 0 ? a.sub(b).abs().max().item<double>() : 0.0;
    least = std::isnan(distance) ? 0 : std::min(least, distance);
  }
  return least;
}

constexpr double kMostSetAside = 0.25;  // of a curve (specification 0.5)

// In modes that round some decision is always close; in fp32 a seed is chosen at which none is.
bool sets_aside(const ScenarioConfig& config) {
  Setting s;
  s.dtype = config.dtype;
  s.input_case.options = config.options;
  return config.text("mode") == "teacher_forced" && sets_decisions_aside(s);
}

// One step of the oracle from `state`, in the mode's roundings, and what its close decisions may change (specification
// 0.5): every other fate is lived through from the same state.
struct OracleStep {
  NamedTensors values, tainted;
};
OracleStep oracle_step(TrainingRun& oracle, const NamedTensors& state, const ScenarioConfig& config) {
  const auto values = [&] {
    oracle.set_state(state);
    oracle.step();
    return values_of(oracle, config, "curves");
  };
  OracleStep step;
  bool any_close = false;
  {
    RoundingRecorder recorder;
    step.values = values();
    any_close = recorder.log.any_close;
  }
  if (!any_close || !sets_aside(config)) return step;
  step.tainted = tainted_by_decisions(values, step.values, kOtherWays).elements;
  values();  // what it tells from here on is of the right step
  return step;
}

// The largest share of a curve's elements that is set aside.
double largest_share(const NamedTensors& tainted) {
  double largest = 0;
  for (const auto& [name, elements] : tainted)
    if (elements.numel() > 0)
      largest = std::max(largest, elements.sum().item<double>() / static_cast<double>(elements.numel()));
  return largest;
}

void check(const ScenarioConfig& config) {
  if (config.texts("apart").size() % 2 != 0)
    throw Error(ErrorKind::kOutOfRange, config.file + ": apart",
                std::to_string(config.texts("apart").size()) + " names", "pairs of names, one after the other");
  const auto bounds_what_is_set_aside = [](const Criterion& one) {
    return one.measure == "oracle.set_aside" && one.equals.value_or(one.at_most.value_or(1)) <= kMostSetAside;
  };
  if (sets_aside(config) && std::none_of(config.criteria.begin(), config.criteria.end(), bounds_what_is_set_aside))
    throw Error(ErrorKind::kBadArgument, config.file + ": criteria", "no limit on oracle.set_aside",
                "say how much of a curve close decisions may take out of the comparison, 0.25 at most");
}

Findings run(const Trial& trial) {
  const auto& config = trial.config;
  const auto workload = trial.source.prepare(config);
  const auto baseline = workload->make(trial.setting(Variant::kBaseline));
  const auto optimized = workload->make(trial.setting(Variant::kOptimized));
  const bool teacher_forced = config.text("mode") == "teacher_forced";
  RunSetting right = trial.oracle();
  if (sets_aside(config)) right.rounding = config.dtype;  // a step errs by less than a rounding that one does without
  const auto oracle = workload->make(right);

  NamedTensors first, last;
  double set_aside = 0;
  std::vector<double> parity, against_oracle, baseline_against_oracle, distances;
  VariantRow rows[2] = {{Variant::kBaseline, baseline->items(), 1, {}, {}, nlohmann::json::array()},
                        {Variant::kOptimized, optimized->items(), 1, {}, {}, nlohmann::json::array()}};
  double unfit = 0;
  Readings least, largest;
  for (std::int64_t i = 0; i < config.count("steps"); ++i) {
    OracleStep truth;
    if (teacher_forced) {
      const auto state = baseline->state();
      optimized->set_state(state);
      truth = oracle_step(*oracle, state, config);
      set_aside = std::max(set_aside, largest_share(truth.tainted));
    } else {
      oracle->step();
      truth.values = values_of(*oracle, config, "curves");
    }
    rows[0].samples_s.push_back(timed_step(*baseline, trial.device));
    rows[1].samples_s.push_back(timed_step(*optimized, trial.device));
    last = values_of(*baseline, config, "curves");
    const auto other = values_of(*optimized, config, "curves");
    distances.push_back(least_distance(*oracle, config));
    for (const auto& [name, value] : oracle->readings()) {
      least[name] = std::min(least.emplace(name, value).first->second, value);
      largest[name] = std::max(largest.emplace(name, value).first->second, value);
    }
    if (i == 0) first = last;
    parity.push_back(worst_ratio(last, other, config, truth.tainted));
    baseline_against_oracle.push_back(worst_ratio(truth.values, last, config, truth.tainted));
    against_oracle.push_back(worst_ratio(truth.values, other, config, truth.tainted));
    unfit += non_finite(other);
  }
  const auto most = [](const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); };
  Findings findings;
  auto& measures = findings.measures;
  measures["optimized.worst_ratio"] = {most(parity), ""};
  measures["optimized.oracle_ratio"] = {most(against_oracle), ""};
  measures["optimized.last_ratio"] = {parity.back(), ""};
  measures["optimized.non_finite"] = {unfit, ""};
  for (const auto& [name, value] : least) measures["oracle.least." + name] = {value, ""};
  for (const auto& [name, value] : largest) measures["oracle.most." + name] = {value, ""};
  if (sets_aside(config)) measures["oracle.set_aside"] = {set_aside, ""};
  if (!config.texts("apart").empty())
    measures["oracle.least_distance"] = {*std::min_element(distances.begin(), distances.end()), ""};
  measures["baseline.oracle_ratio"] = {most(baseline_against_oracle), ""};
  measures["baseline.travel"] = {least_travel(first, last, config), ""};
  rows[0].timelines.push_back(
      {{"name", "error_over_tolerance"}, {"unit", "of the oracle"}, {"values", baseline_against_oracle}});
  rows[1].timelines.push_back(
      {{"name", "error_over_tolerance"}, {"unit", "of the oracle"}, {"values", against_oracle}});
  rows[0].counters = counted(*baseline, 1, trial.device);
  rows[1].counters = counted(*optimized, 1, trial.device);
  for (const auto& row : rows) findings.variants.push_back(to_json(row));
  return findings;
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "the curves of two runs step by step, within a tolerance";
  kind.keys = {
      count_key("steps", 2, 100000, "how many steps"),
      choice_key("mode", {"free", "teacher_forced"},
                 "free: each run on its own state; teacher_forced: all take the baseline's before a step; in modes "
                 "that round what close decisions may change is set aside")
          .or_else("free"),
      texts_key("curves", 1, "losses and outputs that are compared"),
      texts_key("apart", 0, "pairs of outputs, one after the other, that the oracle must tell apart")
          .or_else(nlohmann::json::array()),
      real_key("relative", 0, kLoosestRelative, "relative tolerance"),
      real_key("absolute", 1e-12, 1, "absolute tolerance")};
  kind.measures = {
      {"optimized.worst_ratio", Half::kOptimized, "worst error / allowed against the baseline, over all steps", true,
       Values::kErrorRatio},
      {"optimized.last_ratio", Half::kOptimized, "the same at the last step", false, Values::kErrorRatio},
      {"optimized.oracle_ratio", Half::kOptimized, "worst error / allowed against the fp64 oracle", false,
       Values::kErrorRatio},
      {"optimized.non_finite", Half::kOptimized, "NaN and Inf in its curves"},
      {"baseline.oracle_ratio", Half::kBaseline, "worst error / allowed against the fp64 oracle", false,
       Values::kErrorRatio},
      {"oracle.set_aside", Half::kNeither,
       "of teacher_forced in a mode that rounds: the largest share of a curve that close decisions of a step set aside",
       false, Values::kShare},
      {"oracle.least_distance", Half::kNeither, "smallest max |a - b| of the pairs, over all steps"},
      {"oracle.least.*", Half::kNeither, "the smallest of a reading of the fp64 oracle, over all steps", false,
       Values::kAny},
      {"oracle.most.*", Half::kNeither, "the largest", false, Values::kAny},
      {"baseline.travel", Half::kBaseline, "tolerances that the curve which moves least has moved", true,
       Values::kTolerances}};
  kind.needs_state = true;
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::curve_parity
