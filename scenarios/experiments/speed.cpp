// Kind `speed`: the same step by both variants, their counters, results and times side by side.
#include <algorithm>

#include "harness/timing/paired.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"

namespace twinbench::experiments::speed {
namespace {

void check(const ScenarioConfig& config) {
  // The other way round than the file has it, or a run is compared with itself.
  for (const auto& [key, to] : kSwitchingKeys) {
    const auto name = config.text(key);
    if (name.empty()) continue;
    const auto refuse = [&, key = key](const char* remedy) {
      throw Error(ErrorKind::kOutOfRange, config.file + ": " + key, name, remedy);
    };
    const auto turned = with_value(config, key, name, to);  // refuses unknown names
    if (config.options.count(name) == 0) refuse("it is a size: name an option that is on or off");
    if (turned.options == config.options) refuse("it is so already: give the option the other value");
  }
}

PairedOptions timing_of(const Trial& trial) {
  const auto pairs = trial.config.count("pairs");
  PairedOptions timing;
  timing.seed = trial.config.seed;
  timing.max_pairs = static_cast<std::size_t>(trial.quick ? std::min<std::int64_t>(pairs, 12) : pairs);
  timing.time_budget_s = trial.config.real("seconds");
  timing.target_half_width = kReportHalfWidth;
  return timing;
}

PairedResult timed_pair(const Trial& trial, const char* name_a, TrainingRun& a, const char* name_b, TrainingRun& b) {
  Side one, other;
  one.name = name_a, other.name = name_b;
  one.run = [&] { a.step(); };
  other.run = [&] { b.step(); };
  one.finish = other.finish = [&] { wait_for(trial.device); };
  return measure_pair(one, other, timing_of(trial));
}

// Into the record as that comparison, and one bound of the interval, if there is one, into its measure.
void tell(const PairedResult& paired, const char* comparison, double Interval::*bound, Measure& measure,
          Findings& findings) {
  auto& told = findings.configuration[comparison];
  told = {{"time_ratio", paired.ratio}, {"lower", nullptr}, {"upper", nullptr}, {"n", paired.n}};
  measure = {std::nullopt, "too few pairs for an interval in the time budget"};
  if (!paired.interval) return;
  told["lower"] = paired.interval->lower, told["upper"] = paired.interval->upper;
  measure = {(*paired.interval).*bound, "", true};
}

// What the optimized variant's switch trades: its time as it runs over that with the switch on, and bits that differ.
void compare_switched(const Trial& trial, const Workload& workload, Findings& findings) {
  const auto& config = trial.config;
  auto& measures = findings.measures;
  const auto name = config.text("switch");
  measures["optimized.switch.time_ratio_upper"] = {std::nullopt, "no switch is given"};
  measures["optimized.switch.mismatched_bits"] = {std::nullopt, "no switch is given"};
  measures["gpu.switch.time_ratio_upper"] = {std::nullopt, "no GPU: the ratio that counts is a card's"};
  if (name.empty()) return;
  const auto plain = workload.make(trial.setting(Variant::kOptimized)),
             switched =
                 trial.source.prepare(with_value(config, "switch", name, 1))->make(trial.setting(Variant::kOptimized));
  for (auto* one : {plain.get(), switched.get()}) one->step();
  const auto differing = mismatched_bits(plain->outputs(), switched->outputs());
  measures["optimized.switch.mismatched_bits"] = {static_cast<double>(differing), ""};
  const auto paired = timed_pair(trial, "optimized", *plain, "switched", *switched);
  tell(paired, "switched", &Interval::upper, measures["optimized.switch.time_ratio_upper"], findings);
  if (trial.device.is_cuda()) measures["gpu.switch.time_ratio_upper"] = measures["optimized.switch.time_ratio_upper"];
}

// What one of the baseline's sins costs it: its time as it runs over that without the sin. A card's question: some sins
// are calls alone on the host.
void compare_without_sin(const Trial& trial, const Workload& workload, std::int64_t items, Findings& findings) {
  auto& measure = findings.measures["baseline.sin.time_ratio_lower"];
  const auto name = trial.config.text("sin");
  measure = {std::nullopt, name.empty() ? "no sin is given" : "no GPU: what a sin costs is judged on one only"};
  if (name.empty() || !trial.device.is_cuda()) return;
  const auto sinful = workload.make(trial.setting(Variant::kBaseline, items)),
             without = trial.source.prepare(with_value(trial.config, "sin", name, 0))
                           ->make(trial.setting(Variant::kBaseline, items));
  for (auto* one : {sinful.get(), without.get()}) one->step();
  const auto paired = timed_pair(trial, "baseline", *sinful, "without_sin", *without);
  tell(paired, "without_sin", &Interval::lower, measure, findings);
}

// Both variants take `items` of the workload; a baseline that is linear in them may take fewer and is extrapolated.
Findings run(const Trial& trial) {
  const auto& config = trial.config;
  const auto workload = trial.source.prepare(config);
  const auto whole = workload->items();
  const auto taken = config.count("baseline_items") == 0 ? whole : std::min(config.count("baseline_items"), whole);
  const auto baseline = workload->make(trial.setting(Variant::kBaseline, taken));
  const auto optimized = workload->make(trial.setting(Variant::kOptimized));
  // Of a step, which is what is timed: an epoch may have several.
  const auto all = optimized->items_of_step(), few = baseline->items_of_step();
  const double scale = static_cast<double>(all) / static_cast<double>(few);
  Findings findings;
  double unfit = 0;
  CounterSnapshot few_counters;
  {
    const auto optimized_few = workload->make(trial.setting(Variant::kOptimized, taken));
    const auto oracle = workload->make(trial.oracle(taken));
    for (auto* one : {baseline.get(), optimized.get(), optimized_few.get(), oracle.get()}) one->step();
    findings.measures["parity.worst_ratio"] = measure_of(judge_step(
        trial, config, *workload, {oracle->outputs(), baseline->outputs(), optimized_few->outputs()}, taken));
    unfit = non_finite(optimized_few->outputs()) + non_finite(optimized->outputs());
    const auto sins = baseline->readings(), instead = optimized_few->readings();
    for (const auto& [name, reading] : sins) {
      findings.measures["baseline.reading." + name] = {reading, ""};
      findings.measures["optimized.reading." + name] = {instead.at(name), ""};
      findings.measures["optimized.of_baseline." + name] = {instead.at(name) / reading, ""};
    }
    few_counters = counted(*optimized_few, 1, trial.device);
  }
  const auto baseline_counters = counted(*baseline, 1, trial.device);
  const auto optimized_counters = counted(*optimized, 1, trial.device);

  const auto paired = timed_pair(trial, "baseline", *baseline, "optimized", *optimized);
  unfit += non_finite(optimized->outputs());  // after all the timed steps, too

  findings.configuration["items"] = all;
  findings.variants.push_back(to_json(VariantRow{Variant::kBaseline, few, scale, paired.samples_a, baseline_counters}));
  findings.variants.push_back(to_json(VariantRow{Variant::kOptimized, all, 1, paired.samples_b, optimized_counters}));
  findings.speedup = {{"ratio", paired.ratio * scale},
                      {"lower", nullptr},
                      {"upper", nullptr},
                      {"n", paired.n},
                      {"extrapolated", few != all}};
  compare_switched(trial, *workload, findings);
  compare_without_sin(trial, *workload, taken, findings);
  auto& measures = findings.measures;
  measures["speedup.lower"] = {std::nullopt, "too few pairs for an interval in the time budget"};
  if (paired.interval) {
    findings.speedup["lower"] = paired.interval->lower * scale;
    findings.speedup["upper"] = paired.interval->upper * scale;
    measures["speedup.lower"] = {paired.interval->lower * scale, "", true};
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
      real_key("seconds", 0.1, 3600, "about so many seconds of timing"),
      text_key("switch", "the optimized variant's own switch, with which it is timed as well; empty: none").or_else(""),
      text_key("sin", "a switch of the baseline's, without which it is timed as well, on a card; empty: none")
          .or_else("")};
  kind.measures = {
      {"parity.worst_ratio", Half::kNeither, "both variants compute the same step", true, Values::kErrorRatio},
      {"optimized.non_finite", Half::kOptimized, "no NaN or Inf leaves the step", true},
      {"speedup.lower", Half::kNeither, "lower bound of baseline time over optimized time", true},
      {"optimized.dispatches_growth", Half::kOptimized, "dispatches with all items less those with few", false,
       Values::kAny},
      {"baseline.reading.*", Half::kBaseline, "a reading of the run's own, after one step"},
      {"optimized.reading.*", Half::kOptimized, "a reading of the run's own, of as many items as the baseline takes"},
      {"optimized.of_baseline.*", Half::kOptimized, "the same reading over the baseline's"},
      {"optimized.switch.time_ratio_upper", Half::kOptimized,
       "upper bound of the step's time over that with the switch on"},
      {"gpu.switch.time_ratio_upper", Half::kNeither, "the same, on a card alone"},
      {"optimized.switch.mismatched_bits", Half::kOptimized, "values that the switch changes by any bit"},
      {"baseline.sin.time_ratio_lower", Half::kBaseline, "lower bound of the step's time over that without the sin"},
      {"gpu.busy_fraction", Half::kNeither, "share of a step in which the device works", false, Values::kShare}};
  for (const auto& [name, field] : counter_fields()) {
    kind.measures.push_back({"baseline." + name, Half::kBaseline, "of one step"});
    kind.measures.push_back({"baseline." + name + "_per_item", Half::kBaseline, "of one step, by items"});
    kind.measures.push_back({"optimized." + name, Half::kOptimized, "of one step"});
  }
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::speed
