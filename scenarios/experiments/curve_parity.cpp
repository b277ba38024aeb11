// Kind `curve_parity`: losses and named outputs of every step, optimized against baseline, within a tolerance.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench::experiments::curve_parity {
namespace {

// Values of this step by name, in fp64 on the CPU: losses and outputs by one name space. `key` gives the names.
NamedTensors values_of(TrainingRun& run, const ScenarioConfig& config, const std::string& key) {
  const auto losses = run.losses();
  const auto outputs = run.outputs();
  NamedTensors values;
  for (const auto& name : config.texts(key)) {
    if (const auto loss = losses.find(name); loss != losses.end())
      values.set(name, at::full({1}, loss->second, at::kDouble));
    else if (outputs.contains(name))
      values.set(name, outputs[name].detach().to(at::kCPU, at::kDouble).clone());
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

// Largest |a - b| / (absolute + relative * max(|a|, |b|)) over all curves; NaN and Inf must stand at the same places.
double worst_ratio(const NamedTensors& a, const NamedTensors& b, const ScenarioConfig& config) {
  double worst = 0;
  for (const auto& [name, left] : a) {
    const auto& right = b[name];
    if (left.sizes() != right.sizes()) return kInfinite;
    const auto equal = left.eq(right).logical_or(left.isnan().logical_and(right.isnan()));
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

void check(const ScenarioConfig& config) {
  if (config.texts("apart").size() % 2 != 0)
    throw Error(ErrorKind::kOutOfRange, config.file + ": apart",
                std::to_string(config.texts("apart").size()) + " names", "pairs of names, one after the other");
}

Findings run(const Trial& trial) {
  const auto& config = trial.config;
  const auto workload = trial.source.prepare(config);
  const auto baseline = workload->make(trial.setting(Variant::kBaseline));
  const auto optimized = workload->make(trial.setting(Variant::kOptimized));
  const auto oracle = workload->make(trial.oracle());
  const bool teacher_forced = config.text("mode") == "teacher_forced";

  NamedTensors first, last;
  std::vector<double> parity, against_oracle, baseline_against_oracle, distances;
  VariantRow rows[2] = {{Variant::kBaseline, baseline->items(), 1, {}, {}, nlohmann::json::array()},
                        {Variant::kOptimized, optimized->items(), 1, {}, {}, nlohmann::json::array()}};
  double unfit = 0;
  Readings least, largest;
  for (std::int64_t i = 0; i < config.count("steps"); ++i) {
    if (teacher_forced) {
      const auto state = baseline->state();
      optimized->set_state(state);
      oracle->set_state(state);
    }
    rows[0].samples_s.push_back(timed_step(*baseline, trial.device));
    rows[1].samples_s.push_back(timed_step(*optimized, trial.device));
    oracle->step();
    last = values_of(*baseline, config, "curves");
    const auto other = values_of(*optimized, config, "curves"), truth = values_of(*oracle, config, "curves");
    distances.push_back(least_distance(*oracle, config));
    for (const auto& [name, value] : oracle->readings()) {
      least[name] = std::min(least.emplace(name, value).first->second, value);
      largest[name] = std::max(largest.emplace(name, value).first->second, value);
    }
    if (i == 0) first = last;
    parity.push_back(worst_ratio(last, other, config));
    baseline_against_oracle.push_back(worst_ratio(truth, last, config));
    against_oracle.push_back(worst_ratio(truth, other, config));
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
  kind.keys = {count_key("steps", 2, 100000, "how many steps"),
               choice_key("mode", {"free", "teacher_forced"},
                          "free: each run on its own state; teacher_forced: all take the baseline's before a step")
                   .or_else("free"),
               texts_key("curves", 1, "losses and outputs that are compared"),
               texts_key("apart", 0, "pairs of outputs, one after the other, that the oracle must tell apart")
                   .or_else(nlohmann::json::array()),
               real_key("relative", 0, kLoosestRelative, "relative tolerance"),
               real_key("absolute", 1e-12, 1, "absolute tolerance")};
  kind.measures = {{"optimized.worst_ratio", Half::kOptimized,
                    "worst error / allowed against the baseline, over all steps", true, Values::kErrorRatio},
                   {"optimized.last_ratio", Half::kOptimized, "the same at the last step", false, Values::kErrorRatio},
                   {"optimized.oracle_ratio", Half::kOptimized, "worst error / allowed against the fp64 oracle", false,
                    Values::kErrorRatio},
                   {"optimized.non_finite", Half::kOptimized, "NaN and Inf in its curves"},
                   {"baseline.oracle_ratio", Half::kBaseline, "worst error / allowed against the fp64 oracle", false,
                    Values::kErrorRatio},
                   {"oracle.least_distance", Half::kNeither, "smallest max |a - b| of the pairs, over all steps"},
                   {"oracle.least.*", Half::kNeither, "the smallest of a reading of the fp64 oracle, over all steps",
                    false, Values::kAny},
                   {"oracle.most.*", Half::kNeither, "the largest", false, Values::kAny},
                   {"baseline.travel", Half::kBaseline, "tolerances that the curve which moves least has moved", true,
                    Values::kTolerances}};
  kind.needs_state = true;
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::curve_parity
