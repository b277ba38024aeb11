// Kind `precision`: the same training in the file's precision and in fp32, of each variant: how far the losses end
// apart, and what each of them holds.
#include <algorithm>
#include <cmath>

#include "harness/timing/statistics.h"
#include "scenarios/runner/curve.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"

namespace twinbench::experiments::precision {
namespace {

constexpr const char* kNone = "none";
constexpr const char* kOfPrecision = "_dtype";  // what the options end in that say how something is kept

struct Course {
  std::map<std::string, std::vector<double>> losses;
  Readings largest;  // of readings, over all windows
  double not_finite = 0;
};

Course taken(TrainingRun& run, const Trial& trial, VariantRow& row) {
  Course course;
  for (std::int64_t window = 0; window < trial.config.count("windows"); ++window) {
    row.samples_s.push_back(timed_step(run, trial.device));
    for (const auto& [name, tensor] : run.outputs()) course.not_finite += non_finite(tensor);
    for (const auto& [name, value] : run.losses()) {
      course.losses[name].push_back(value);
      course.not_finite += std::isfinite(value) ? 0 : 1;
    }
    for (const auto& [name, value] : run.readings()) {
      double& largest = course.largest.emplace(name, value).first->second;
      largest = std::max(largest, value);
    }
  }
  return course;
}

double median_of_last(const std::vector<double>& values, std::int64_t count) {
  const auto last = std::min<std::ptrdiff_t>(count, std::ssize(values));
  return median(std::vector<double>(values.end() - last, values.end()));
}

void compare(const Trial& trial, Variant variant, const Course& exact, const Course& rounded, Measures& measures) {
  const std::string prefix = to_string(variant) + ".";
  const std::int64_t ends = trial.config.count("ends");
  for (const auto& [name, values] : rounded.losses) {
    const double ours = median_of_last(values, ends), theirs = median_of_last(exact.losses.at(name), ends);
    const double apart = std::abs(ours - theirs) / std::abs(theirs);
    measures[prefix + "loss_apart." + name] = {std::isfinite(apart) ? apart : kInfinite, ""};
    measures[prefix + "last_over_first." + name] = {last_over_first(values, static_cast<std::size_t>(ends)), ""};
  }
  for (const auto& [name, value] : rounded.largest) {
    const double of = exact.largest.at(name);
    measures[prefix + "of_fp32." + name] = {of > 0 ? value / of : kInfinite, of > 0 ? "" : "fp32's is 0"};
  }
  measures[prefix + "non_finite"] = {rounded.not_finite + exact.not_finite, ""};
}

void check(const ScenarioConfig& config) {
  if (config.dtype == Dtype::kFp32 && config.text("fp32_without") == kNone)
    throw Error(ErrorKind::kOutOfRange, config.file + ": dtype", "fp32",
                "both runs would be one: give another precision, or in 'fp32_without' what fp32's does not have");
  if (2 * config.count("ends") > config.count("windows"))
    throw Error(ErrorKind::kOutOfRange, config.file + ": ends", std::to_string(config.count("ends")),
                "both ends are compared: give at most half of the windows");
  const auto without = config.text("fp32_without");
  if (without == kNone) return;
  const auto refuse = [&](const std::string& remedy) {
    throw Error(ErrorKind::kOutOfRange, config.file + ": fp32_without", without, remedy);
  };
  with_value(config, "fp32_without", without, 0);
  // Another size, rate or seed would be another training, and no matter of precision.
  const auto option = config.options.find(without);
  if (option == config.options.end() || !without.ends_with(kOfPrecision))
    refuse(std::string("give an option that says in what precision something is kept: they end in ") + kOfPrecision);
  if (option->second == 0) refuse("it is 0 in both runs: give it another value under 'options', or leave this key out");
}

Findings run(const Trial& trial) {
  const auto& config = trial.config;
  const auto without = config.text("fp32_without");
  const auto rounded = trial.source.prepare(config),
             exact = trial.source.prepare(without == kNone ? config : with_value(config, "fp32_without", without, 0));
  Findings findings;
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const auto in_fp32 = exact->make({variant, Dtype::kFp32, trial.device, 0}),
               one = rounded->make(trial.setting(variant));
    VariantRow row{variant, one->items(), 1, {}, {}, nlohmann::json::array()}, other = row;
    const Course reference = taken(*in_fp32, trial, other), course = taken(*one, trial, row);
    row.counters = counted(*one, 1, trial.device);
    compare(trial, variant, reference, course, findings.measures);
    for (const auto& [of, curves] : {std::pair("", &course.losses), {"_in_fp32", &reference.losses}})
      for (const auto& [name, values] : *curves)
        row.timelines.push_back({{"name", name + of}, {"unit", ""}, {"values", values}});
    findings.variants.push_back(to_json(row));
  }
  return findings;
}

std::vector<MeasureSpec> measures_of(Half half) {
  const std::string variant = to_string(half);
  const bool optimized = half == Half::kOptimized;
  return {{variant + ".loss_apart.*", half, "a loss: |median of its last windows - fp32's| / fp32's", optimized,
           Values::kNonNegative, Names::kLosses},
          {variant + ".last_over_first.*", half, "a loss: the median of its last windows over that of its first",
           optimized, Values::kNonNegative, Names::kLosses},
          {variant + ".of_fp32.*", half, "a reading: the largest of any window, over fp32's"},
          {variant + ".non_finite", half, "NaN and Inf in losses and outputs of both runs", optimized}};
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "training in a precision beside the same in fp32: where the losses end, what is held";
  kind.keys = {count_key("windows", 2, 100000, "windows, of each run"),
               count_key("ends", 1, 1000, "windows at an end whose median loss is compared").or_else(20),
               text_key("fp32_without", "an option of precision that is 0 in the fp32 run, or 'none'").or_else(kNone)};
  for (const auto half : {Half::kBaseline, Half::kOptimized})
    for (auto& measure : measures_of(half)) kind.measures.push_back(std::move(measure));
  kind.needs_losses = true;
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::precision
