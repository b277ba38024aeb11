// Kind `claim_check`: a figure that a document gives for a rule, recomputed: a count with the rule against one without.
#include <algorithm>
#include <limits>

#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench::experiments::claim_check {
namespace {

void check(const ScenarioConfig& config) {
  with_value(config, "over", config.text("over"), config.counts("values").front());
  with_value(config, "without_rule", config.text("without_rule"), 1);
}

// One number an item, on the CPU.
at::Tensor counts_in(const ScenarioConfig& config, const NamedTensors& outputs) {
  const auto name = config.text("output");
  if (outputs.contains(name)) return outputs[name].to(at::kCPU, at::kDouble);
  std::vector<std::string> known;
  for (const auto& [known_name, tensor] : outputs) known.push_back(known_name);
  throw Error(ErrorKind::kUnknownName, config.file + ": output", name,
              "the run has no output of that name" + did_you_mean(name, known));
}

struct Range {
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
  void take(const at::Tensor& counts) {
    smallest = std::min(smallest, counts.min().item<double>());
    largest = std::max(largest, counts.max().item<double>());
  }
};

Findings run(const Trial& trial) {
  const auto& config = trial.config;
  Findings findings;
  StepParity worst;
  Range without_rule, with_rule;
  double unfit = 0, first_ratio = 0, least_ratio = std::numeric_limits<double>::infinity();
  nlohmann::json sums_without = nlohmann::json::array(), sums_with = nlohmann::json::array();
  VariantRow baseline_row, optimized_row;
  optimized_row.variant = Variant::kOptimized;
  for (const auto value : config.counts("values")) {
    const auto changed = with_value(config, "over", config.text("over"), value);
    const auto workload = trial.source.prepare(changed);
    const auto oracle = workload->make(trial.oracle()), baseline = workload->make(trial.setting(Variant::kBaseline)),
               optimized = workload->make(trial.setting(Variant::kOptimized));
    const auto bare = trial.source.prepare(with_value(changed, "without_rule", config.text("without_rule"), 1))
                          ->make(trial.setting(Variant::kBaseline));
    for (auto* one : {oracle.get(), baseline.get(), optimized.get(), bare.get()}) one->step();
    take_worse(worst,
               judge_step(trial, changed, *workload, {oracle->outputs(), baseline->outputs(), optimized->outputs()}),
               config.text("over") + " " + std::to_string(value));
    unfit += non_finite(optimized->outputs());
    const at::Tensor before = counts_in(config, bare->outputs()), after = counts_in(config, optimized->outputs());
    without_rule.take(before);
    with_rule.take(after);
    const double sum_before = before.sum().item<double>(), sum_after = after.sum().item<double>();
    const double ratio = sum_before / sum_after;
    if (sums_with.empty()) first_ratio = ratio;
    least_ratio = std::min(least_ratio, ratio);
    sums_without.push_back(sum_before);
    sums_with.push_back(sum_after);
    baseline_row.items = optimized_row.items = optimized->items();
    baseline_row.samples_s = {timed_step(*bare, trial.device)};
    optimized_row.samples_s = {timed_step(*optimized, trial.device)};
    baseline_row.counters = counted(*bare, 1, trial.device);
    optimized_row.counters = counted(*optimized, 1, trial.device);
  }
  const std::string unit = "of all items, by " + config.text("over");
  baseline_row.timelines.push_back({{"name", config.text("output")}, {"unit", unit}, {"values", sums_without}});
  optimized_row.timelines.push_back({{"name", config.text("output")}, {"unit", unit}, {"values", sums_with}});
  findings.variants = {to_json(baseline_row), to_json(optimized_row)};
  auto& measures = findings.measures;
  measures["parity.worst_ratio"] = measure_of(worst);
  measures["optimized.non_finite"] = {unfit, ""};
  measures["baseline.smallest"] = {without_rule.smallest, ""};
  measures["baseline.largest"] = {without_rule.largest, ""};
  measures["optimized.smallest"] = {with_rule.smallest, ""};
  measures["optimized.largest"] = {with_rule.largest, ""};
  measures["claim.first_ratio"] = {first_ratio, ""};
  measures["claim.least_ratio"] = {least_ratio, ""};
  measures["claim.first_over_documented"] = {first_ratio / config.real("documented"), ""};
  add_counters(measures, "baseline.", baseline_row.counters);
  add_counters(measures, "optimized.", optimized_row.counters);
  return findings;
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "a documented figure of a rule: what is counted without it over what is counted with it";
  kind.keys = {text_key("over", "the size or option whose values are the situations"),
               counts_key("values", 0, 1e9, 1, "its values; the document speaks of the first"),
               text_key("output", "the output that is counted, a number an item"),
               text_key("without_rule", "the switch that takes the rule from the baseline"),
               real_key("documented", 1e-9, 1e9, "the document's ratio; 1: it gives none").or_else(1)};
  kind.measures = {
      {"parity.worst_ratio", Half::kNeither, "both variants with the rule, at every value", true, Values::kErrorRatio},
      {"optimized.non_finite", Half::kOptimized, "no NaN or Inf leaves a step"},
      {"baseline.smallest", Half::kBaseline, "the smallest count of an item without the rule", true, Values::kAny},
      {"baseline.largest", Half::kBaseline, "the largest count of an item without the rule", false, Values::kAny},
      {"optimized.smallest", Half::kOptimized, "the smallest count of an item with the rule", false, Values::kAny},
      {"optimized.largest", Half::kOptimized, "the largest count of an item with the rule", false, Values::kAny},
      {"claim.first_ratio", Half::kNeither, "all items without the rule over all with it, at the first value", true},
      {"claim.least_ratio", Half::kNeither, "the smallest of these ratios over the values"},
      {"claim.first_over_documented", Half::kNeither, "the first ratio over the document's"}};
  for (const auto& [name, field] : counter_fields()) {
    kind.measures.push_back({"baseline." + name, Half::kBaseline, "of one step without the rule, at the last value"});
    kind.measures.push_back({"optimized." + name, Half::kOptimized, "of one step with the rule, at the last value"});
  }
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::claim_check
