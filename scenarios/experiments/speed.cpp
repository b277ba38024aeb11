// Kind `speed`: the same step by both variants, their counters, results and times side by side.
#include <algorithm>

#include "harness/timing/paired.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"

namespace twinbench::experiments::speed {
namespace {

// Both variants take `items` of the workload; a baseline that is linear in them may take fewer and is extrapolated.
Findings run(const Trial& trial) {
  const auto& config = trial.config;
  const auto workload = trial.source.prepare(config);
  const auto all = workload->items();
  const auto few = config.count("baseline_items") == 0 ? all : std::min(config.count("baseline_items"), all);
  const double scale = static_cast<double>(all) / static_cast<double>(few);

  const auto baseline = workload->make(trial.setting(Variant::kBaseline, few));
  const auto optimized = workload->make(trial.setting(Variant::kOptimized));
  Findings findings;
  double unfit = 0;
  CounterSnapshot few_counters;
  {
    const auto optimized_few = workload->make(trial.setting(Variant::kOptimized, few));
    const auto oracle = workload->make(trial.oracle(few));
    for (auto* one : {baseline.get(), optimized.get(), optimized_few.get(), oracle.get()}) one->step();
    const auto parity = compare_steps(oracle->outputs(), baseline->outputs(), optimized_few->outputs(),
                                      trial.source.step_tolerance, config.dtype);
    findings.measures["parity.worst_ratio"] = {parity.worst_ratio, parity.reason};
    unfit = non_finite(optimized_few->outputs()) + non_finite(optimized->outputs());
    few_counters = counted(*optimized_few, 1, trial.device);
  }
  const auto baseline_counters = counted(*baseline, 1, trial.device);
  const auto optimized_counters = counted(*optimized, 1, trial.device);

  PairedOptions timing;
  timing.seed = config.seed;
  timing.max_pairs =
      static_cast<std::size_t>(trial.quick ? std::min<std::int64_t>(config.count("pairs"), 12) : config.count("pairs"));
  timing.time_budget_s = config.real("seconds");
  timing.target_half_width = kReportHalfWidth;
  Side one, other;
  one.name = "baseline";
  one.run = [&] { baseline->step(); };
  other.name = "optimized";
  other.run = [&] { optimized->step(); };
  one.finish = other.finish = [&] { wait_for(trial.device); };
  const auto paired = measure_pair(one, other, timing);
  unfit += non_finite(optimized->outputs());  // after all the timed steps, too

  findings.configuration["items"] = all;
  findings.variants.push_back(to_json(VariantRow{Variant::kBaseline, few, scale, paired.samples_a, baseline_counters}));
  findings.variants.push_back(to_json(VariantRow{Variant::kOptimized, all, 1, paired.samples_b, optimized_counters}));
  findings.speedup = {{"ratio", paired.ratio * scale},
                      {"lower", nullptr},
                      {"upper", nullptr},
                      {"n", paired.n},
                      {"extrapolated", few != all}};
  auto& measures = findings.measures;
  measures["speedup.lower"] = {std::nullopt, "too few pairs for an interval in the time budget"};
  if (paired.interval) {
    findings.speedup["lower"] = paired.interval->lower * scale;
    findings.speedup["upper"] = paired.interval->upper * scale;
    measures["speedup.lower"] = {paired.interval->lower * scale, ""};
  }
  add_counters(measures, "baseline.", baseline_counters);
  add_counters(measures, "baseline.", baseline_counters, "_per_item", static_cast<double>(few));
  add_counters(measures, "optimized.", optimized_counters);
  measures["optimized.dispatches_growth"] = {
      static_cast<double>(optimized_counters.dispatches - few_counters.dispatches), ""};
  measures["optimized.non_finite"] = {unfit, ""};
  measures["gpu.busy_fraction"] = {std::nullopt, trial.device.is_cpu()
                                                     ? "no GPU: utilisation is measured on a device only"
                                                     : "the busy share of a step is not measured by this kind"};
  return findings;
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "the same work by both variants: counters, results and times side by side";
  kind.keys = {
      count_key("baseline_items", 0, 1e9, "items that the baseline takes, extrapolated linearly; 0: all").or_else(0),
      count_key("pairs", 8, 10000, "at most so many timed pairs; an interval needs 8"),
      real_key("seconds", 0.1, 3600, "about so many seconds of timing")};
  kind.measures = {
      {"parity.worst_ratio", Half::kNeither, "both variants compute the same step", true, Values::kErrorRatio},
      {"optimized.non_finite", Half::kOptimized, "no NaN or Inf leaves the step", true},
      {"speedup.lower", Half::kNeither, "lower bound of baseline time over optimized time", true},
      {"optimized.dispatches_growth", Half::kOptimized, "dispatches with all items less those with few", false,
       Values::kAny},
      {"gpu.busy_fraction", Half::kNeither, "share of a step in which the device works", false, Values::kShare}};
  for (const auto& [name, field] : counter_fields()) {
    kind.measures.push_back({"baseline." + name, Half::kBaseline, "of one step"});
    kind.measures.push_back({"baseline." + name + "_per_item", Half::kBaseline, "of one step, by items"});
    kind.measures.push_back({"optimized." + name, Half::kOptimized, "of one step"});
  }
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::speed
