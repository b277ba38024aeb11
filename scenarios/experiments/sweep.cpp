// Kind `sweep`: one size or option over a list of values; counters are judged by the law they grow with.
#include <algorithm>
#include <cmath>
#include <functional>

#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"

namespace twinbench::experiments::sweep {
namespace {

void check(const ScenarioConfig& config) {
  const auto values = config.counts("values");
  if (std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) != values.end())
    throw Error(ErrorKind::kOutOfRange, config.file + ": values", "not rising",
                "list them from small to large, each once");
  with_value(config, "over", config.text("over"), values.front());
}

// The slope of log(count) over log(value), least squares: 0 for a constant, 1 for a proportional count. What is below
// `least` is taken as that, so that a counter that stays 0 is a constant. A value of 0 belongs to no law.
double exponent(const std::vector<std::int64_t>& values, const std::vector<double>& counts, double least = 1) {
  double mean_x = 0, mean_y = 0, above = 0, below = 0;
  const std::size_t first = values.front() == 0 ? 1 : 0;
  const auto n = static_cast<double>(values.size() - first);
  const auto x = [&](std::size_t i) { return std::log(static_cast<double>(values[i])); };
  const auto y = [&](std::size_t i) { return std::log(std::max(least, counts[i])); };
  for (std::size_t i = first; i < values.size(); ++i) mean_x += x(i) / n, mean_y += y(i) / n;
  for (std::size_t i = first; i < values.size(); ++i) {
    above += (x(i) - mean_x) * (y(i) - mean_y);
    below += (x(i) - mean_x) * (x(i) - mean_x);
  }
  return above / below;
}

// What one variant does at each value.
struct Series {
  std::vector<CounterSnapshot> counters;
  std::vector<double> seconds;        // the median of `repeats` steps
  std::vector<NamedTensors> outputs;  // of the first step, on the CPU
  std::vector<std::int64_t> items;
  double broken_rules = 0;  // values at which a step breaks one
  std::string which_rules;
  Readings counts;          // and readings, the run's own, of its first step at the last value
  Readings least, largest;  // the same over all values
};

// At how many values a step takes less than nine tenths of the time at the value before.
double falls(const std::vector<double>& seconds) {
  double count = 0;
  for (std::size_t i = 1; i < seconds.size(); ++i) count += seconds[i] < 0.9 * seconds[i - 1];
  return count;
}

// At how many values fewer items than nine tenths are done in a second of those at the value before.
double rate_falls(const Series& series) {
  double count = 0;
  const auto rate = [&](std::size_t i) { return static_cast<double>(series.items[i]) / series.seconds[i]; };
  for (std::size_t i = 1; i < series.seconds.size(); ++i) count += rate(i) < 0.9 * rate(i - 1);
  return count;
}

double median_step(TrainingRun& run, std::int64_t repeats, c10::Device device) {
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < repeats; ++i) seconds.push_back(timed_step(run, device));
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

void add_series(Findings& findings, Variant variant, const std::vector<std::int64_t>& values, const Series& series,
                const Device& device) {
  const std::string prefix = to_string(variant) + ".";
  VariantRow row{variant, series.items.back(), 1, {series.seconds.back()}, series.counters.back(), {}};
  row.timelines = nlohmann::json::array();
  std::vector<std::string> names;
  for (const std::string name : {"launches", "graph_launches", "captures"}) {
    if (device.takes_cuda_path()) {
      names.push_back(name);
      continue;
    }
    for (const char* family : {"exponent.", "largest.", "first."})
      findings.measures[prefix + family + name] = {std::nullopt, "the CPU launches nothing: simt and cuda count it"};
  }
  for (const auto& field : counter_fields()) names.push_back(field.first);
  for (const auto& name : names) {
    std::vector<double> counts;
    for (const auto& snapshot : series.counters) counts.push_back(static_cast<double>(snapshot.value(name)));
    findings.measures[prefix + "exponent." + name] = {exponent(values, counts), ""};
    findings.measures[prefix + "largest." + name] = {*std::max_element(counts.begin(), counts.end()), ""};
    findings.measures[prefix + "first." + name] = {counts.front(), ""};
    if (name == "dispatches" || name == "scalar_reads")
      row.timelines.push_back({{"name", name}, {"unit", "a step, by value"}, {"values", counts}});
  }
  constexpr double kNanosecond = 1e-9;
  findings.measures[prefix + "exponent.seconds"] = {exponent(values, series.seconds, kNanosecond), "", true};
  findings.measures[prefix + "falls.seconds"] = {falls(series.seconds), "", true};
  findings.measures[prefix + "broken_rules"] = {series.broken_rules, series.which_rules};
  for (const auto& [name, count] : series.counts) findings.measures[prefix + "run." + name] = {count, ""};
  for (const auto& [name, count] : series.least) findings.measures[prefix + "least_run." + name] = {count, ""};
  for (const auto& [name, count] : series.largest) findings.measures[prefix + "largest_run." + name] = {count, ""};
  row.timelines.push_back({{"name", "seconds"}, {"unit", "a step, by value"}, {"values", series.seconds}});
  auto& differing = findings.measures[prefix + "differing_values"];
  double count = 0;
  for (const auto& outputs : series.outputs) count += mismatched_bits(series.outputs.front(), outputs) > 0 ? 1 : 0;
  differing = {count, ""};
  findings.variants.push_back(to_json(row));
}

Findings run(const Trial& trial) {
  const auto& config = trial.config;
  const auto values = config.counts("values");
  Findings findings;
  Series baseline, optimized;
  StepParity worst;
  double unfit = 0;
  for (const auto value : values) {
    const auto changed = with_value(config, "over", config.text("over"), value);
    const auto workload = trial.source.prepare(changed);
    const auto oracle = workload->make(trial.oracle());
    oracle->step();
    const auto take = [&](Series& series, Variant variant) {
      const auto one = workload->make(trial.setting(variant));
      one->step();
      NamedTensors first;
      for (const auto& [name, tensor] : one->outputs()) first.set(name, tensor.detach().clone());
      series.outputs.push_back(first);
      series.items.push_back(one->items_of_step());
      const auto broken = one->broken_rules();
      series.broken_rules += broken.empty() ? 0 : 1;
      for (const auto& rule : broken)
        series.which_rules += (series.which_rules.empty() ? "" : "; ") + std::to_string(value) + ": " + rule;
      series.counts = one->counters();
      series.counts.merge(one->readings());
      for (const auto& [name, count] : series.counts) {
        const auto over = [&, &name = name, &count = count](Readings& of, auto better) {
          const auto [found, is_new] = of.try_emplace(name, count);
          if (!is_new && better(count, found->second)) found->second = count;
        };
        over(series.least, std::less<>()), over(series.largest, std::greater<>());
      }
      series.counters.push_back(counted(*one, 1, trial.device));
      series.seconds.push_back(median_step(*one, config.count("repeats"), trial.device));
    };
    take(baseline, Variant::kBaseline);
    take(optimized, Variant::kOptimized);
    unfit += non_finite(optimized.outputs.back());
    take_worse(
        worst,
        judge_step(trial, changed, *workload, {oracle->outputs(), baseline.outputs.back(), optimized.outputs.back()}),
        config.text("over") + " " + std::to_string(value));
  }
  findings.measures["parity.worst_ratio"] = measure_of(worst);
  findings.measures["optimized.non_finite"] = {unfit, ""};
  add_series(findings, Variant::kBaseline, values, baseline, trial.device);
  add_series(findings, Variant::kOptimized, values, optimized, trial.device);
  findings.measures["optimized.rate_falls"] = {rate_falls(optimized), "", true};
  findings.measures["gpu.rate_falls"] = {std::nullopt, "no GPU: the rate that counts is a card's"};
  if (trial.device.is_cuda()) findings.measures["gpu.rate_falls"] = findings.measures["optimized.rate_falls"];
  findings.measures["last.time_ratio"] = {optimized.seconds.back() / baseline.seconds.back(), "", true};
  return findings;
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "one setting over a list of values: the law by which counters grow, equal results at each";
  kind.keys = {text_key("over", "the size or option that is swept"),
               counts_key("values", 0, 1e9, 3, "its values, rising; a 0 belongs to no law"),
               count_key("repeats", 1, 10000, "timed steps of a variant at each value, by their median").or_else(1)};
  kind.measures = {
      {"parity.worst_ratio", Half::kNeither, "both variants compute the same step at every value", true,
       Values::kErrorRatio},
      {"optimized.non_finite", Half::kOptimized, "no NaN or Inf leaves a step"},
      {"baseline.exponent.*", Half::kBaseline,
       "the power of the swept value that a counter of a step, or its seconds, grows with", true, Values::kAny},
      {"optimized.exponent.*", Half::kOptimized,
       "the power of the swept value that a counter of a step, or its seconds, grows with", true, Values::kAny},
      {"baseline.falls.seconds", Half::kBaseline, "values at which a step takes less than 0.9 of the time before"},
      {"optimized.falls.seconds", Half::kOptimized, "values at which a step takes less than 0.9 of the time before"},
      {"optimized.rate_falls", Half::kOptimized,
       "values at which fewer items a second are done than 0.9 of the rate before"},
      {"gpu.rate_falls", Half::kNeither, "the same, on a card alone"},
      {"last.time_ratio", Half::kNeither, "time of the optimized step over the baseline's, at the last value"},
      {"baseline.largest.*", Half::kBaseline, "a counter of a step, the largest over the values"},
      {"optimized.largest.*", Half::kOptimized, "a counter of a step, the largest over the values"},
      {"baseline.first.*", Half::kBaseline, "a counter of a step at the first value"},
      {"optimized.first.*", Half::kOptimized, "a counter of a step at the first value"},
      {"baseline.broken_rules", Half::kBaseline, "values at which a step breaks a rule of the run's own"},
      {"optimized.broken_rules", Half::kOptimized, "values at which a step breaks a rule of the run's own"},
      {"baseline.run.*", Half::kBaseline, "what the run counts and reads itself, by its first step at the last value",
       false, Values::kAny},
      {"optimized.run.*", Half::kOptimized, "what the run counts and reads itself, by its first step at the last value",
       false, Values::kAny},
      {"baseline.least_run.*", Half::kBaseline, "the same, the least over the values", false, Values::kAny},
      {"optimized.least_run.*", Half::kOptimized, "the same, the least over the values", false, Values::kAny},
      {"baseline.largest_run.*", Half::kBaseline, "the same, the largest over the values", false, Values::kAny},
      {"optimized.largest_run.*", Half::kOptimized, "the same, the largest over the values", false, Values::kAny},
      {"baseline.differing_values", Half::kBaseline, "values at which results differ bit for bit from the first's"},
      {"optimized.differing_values", Half::kOptimized, "values at which results differ bit for bit from the first's"}};
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::sweep
