// Kind `mutation`: a documented mistake planted in the baseline; the checks must reject it, and nothing without it.
#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"

namespace twinbench::experiments::mutation {
namespace {

ScenarioConfig with_mistake(const ScenarioConfig& config) {
  return with_value(config, "mistake", config.text("mistake"), 1);
}

// What is left of a measure's name behind the family's, or nothing.
std::string behind(const std::string& measure, const std::string& family) {
  return measure.starts_with(family) ? measure.substr(family.size()) : "";
}

// Anything wrong is rejected: that it is the documented mistake is what its size says, from below and from above.
void check_size_is_told(const ScenarioConfig& config) {
  std::set<std::string> from_below, from_above;
  for (const auto& criterion : config.criteria) {
    const auto take = [&](std::set<std::string>& names, const std::string& family, bool wanted) {
      const std::string name = behind(criterion.measure, family);
      if (wanted && !name.empty()) names.insert(name);
    };
    const bool equal = criterion.equals.has_value();
    take(from_below, "baseline.smallest_error.", criterion.at_least || equal);
    take(from_above, "baseline.largest_error.", criterion.at_most || equal);
    take(from_below, "baseline.reading.", criterion.at_least || equal);
    take(from_above, "baseline.reading.", criterion.at_most || equal);
  }
  if (std::none_of(from_below.begin(), from_below.end(), [&](const auto& name) { return from_above.contains(name); }))
    throw Error(ErrorKind::kOutOfRange, config.file + ": criteria", "the mistake's size is not judged from both sides",
                "any wrong answer would pass for it: hold baseline.smallest_error.X and largest_error.X, or a "
                "baseline.reading.X, to what is documented");
}

void check(const ScenarioConfig& config) {
  check_size_is_told(config);
  with_mistake(with_value(config, "over", config.text("over"), config.counts("values").front()));
}

// ||wrong - right|| / ||right||, both L2 norms over all elements.
double relative_error(const at::Tensor& wrong, const at::Tensor& right) {
  const auto exact = [](const at::Tensor& tensor) { return tensor.to(at::kCPU, at::kDouble); };
  if (wrong.sizes() != right.sizes()) return kInfinite;
  const auto norm = [](const at::Tensor& tensor) { return at::linalg_vector_norm(tensor).item<double>(); };
  const double error = norm(exact(wrong) - exact(right)) / std::max(norm(exact(right)), 1e-30);
  return error < kInfinite ? error : kInfinite;
}

// Smallest and largest of something over the values.
struct Range {
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  std::vector<double> all;
  void take(double value) {
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
    all.push_back(value);
  }
  // The least that one is times the one before; of a single one, nothing.
  double least_growth() const {
    double least = kInfinite;
    for (std::size_t i = 1; i < all.size(); ++i) least = std::min(least, all[i] / std::max(all[i - 1], 1 / kInfinite));
    return all.size() < 2 ? 0 : least;
  }
};

void add(std::string& text, const std::string& more) { text += (text.empty() ? "" : "; ") + more; }

struct Rules {
  double broken = 0;  // at how many values
  std::string which;
  void look(TrainingRun& run, const std::string& where) {
    const auto found = run.broken_rules();
    broken += found.empty() ? 0 : 1;
    for (const auto& one : found) add(which, where + ": " + one);
  }
};

Findings run(const Trial& trial) {
  const auto& config = trial.config;
  Findings findings;
  double rejected = 0;
  std::string why_rejected;
  StepParity worst;
  Rules planted_rules, clean_rules;
  std::map<std::string, Range> errors, readings;  // by output; by the run's own figure
  VariantRow rows[2] = {{Variant::kBaseline}, {Variant::kOptimized}};
  for (const auto value : config.counts("values")) {
    const std::string where = config.text("over") + " " + std::to_string(value);
    const auto right = with_value(config, "over", config.text("over"), value);
    const auto workload = trial.source.prepare(right), wrong = trial.source.prepare(with_mistake(right));
    const auto oracle = workload->make(trial.oracle()), clean = workload->make(trial.setting(Variant::kBaseline)),
               optimized = workload->make(trial.setting(Variant::kOptimized)),
               planted = wrong->make(trial.setting(Variant::kBaseline));
    for (auto* one : {oracle.get(), clean.get()}) one->step();
    rows[0].samples_s = {timed_step(*planted, trial.device)};
    rows[1].samples_s = {timed_step(*optimized, trial.device)};
    const auto judged = [&](TrainingRun& candidate) {
      return judge_step(trial, right, *workload, {oracle->outputs(), clean->outputs(), candidate.outputs()});
    };
    const auto of_planted = judged(*planted), of_optimized = judged(*optimized);
    rejected += of_planted.worst_ratio > 1 ? 1 : 0;
    if (of_planted.worst_ratio > 1) add(why_rejected, where + ": " + of_planted.reason);
    take_worse(worst, of_optimized, where);
    planted_rules.look(*planted, where);
    for (auto* one : {clean.get(), optimized.get()}) clean_rules.look(*one, where);
    for (const auto& [name, tensor] : oracle->outputs())
      if (tensor.is_floating_point()) errors[name].take(relative_error(planted->outputs()[name], tensor));
    for (const auto& [name, reading] : planted->readings()) {
      readings[name].take(reading);
      findings.measures["baseline.reading." + name + ".at_" + std::to_string(value)] = {reading, ""};
    }
    rows[0].items = planted->items();
    rows[1].items = optimized->items();
    rows[0].counters = counted(*planted, 1, trial.device);
    rows[1].counters = counted(*optimized, 1, trial.device);
  }
  auto& measures = findings.measures;
  measures["baseline.rejected"] = {rejected, why_rejected};
  measures["baseline.breaks_rules"] = {planted_rules.broken, planted_rules.which};
  measures["optimized.worst_ratio"] = measure_of(worst);
  measures["clean.breaks_rules"] = {clean_rules.broken, clean_rules.which};
  for (const auto& [name, range] : errors) {
    measures["baseline.smallest_error." + name] = {range.smallest, ""};
    measures["baseline.largest_error." + name] = {range.largest, ""};
    rows[0].timelines.push_back({{"name", "error of " + name},
                                 {"unit", "of the right answer's norm, by " + config.text("over")},
                                 {"values", range.all}});
  }
  for (const auto& [name, range] : readings) {
    measures["baseline.least_growth." + name] = {range.least_growth(), ""};
    rows[0].timelines.push_back(
        {{"name", name}, {"unit", "the run's own, by " + config.text("over")}, {"values", range.all}});
  }
  findings.configuration["broken_rules"] = planted_rules.which;  // how wrong it is, in the rules' own measure
  for (const auto& row : rows) findings.variants.push_back(to_json(row));
  return findings;
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "a documented mistake, planted in the baseline: the checks reject it, and nothing without it";
  kind.keys = {text_key("mistake", "the switch that plants it"),
               text_key("over", "the size or option whose values are the situations"),
               counts_key("values", 0, 1e9, 1, "its values")};
  kind.measures = {
      {"baseline.rejected", Half::kBaseline, "values at which the comparison with the oracle rejects it", true},
      {"baseline.breaks_rules", Half::kBaseline, "values at which it breaks a rule of the run's own: a residual, say"},
      {"baseline.smallest_error.*", Half::kBaseline, "||wrong - right|| / ||right|| of an output, the least of all"},
      {"baseline.largest_error.*", Half::kBaseline, "||wrong - right|| / ||right|| of an output, the most of all"},
      {"baseline.reading.*", Half::kBaseline, "<name>.at_<value>: a figure of the run's own at that value: a residual"},
      {"baseline.least_growth.*", Half::kBaseline,
       "a figure of the run's own over that at the value before, the least"},
      {"optimized.worst_ratio", Half::kOptimized, "worst error / allowed without it, at every value", true,
       Values::kErrorRatio},
      {"clean.breaks_rules", Half::kNeither, "times that either variant breaks a rule of the run's own without it",
       true}};
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::mutation
