// Kind `growth`: many steps in windows; what a window costs and what is held at its end must not grow.
#include <algorithm>

#include "harness/memory/tracked_allocator.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"

namespace twinbench::experiments::growth {
namespace {

using Windows = std::map<std::string, std::vector<double>>;  // by quantity, a value a window

Windows take_windows(TrainingRun& run, const Trial& trial, VariantRow& row) {
  Windows windows;
  const auto start = held_bytes(trial.device);
  for (std::int64_t w = 0; w < trial.config.count("windows"); ++w) {
    const auto seconds = timed_step(run, trial.device);  // a step of its own: counting slows the others
    row.counters = counted(run, trial.config.count("steps_per_window") - 1, trial.device);
    row.samples_s.push_back(seconds);
    for (const auto& [name, field] : counter_fields())
      windows[name].push_back(static_cast<double>(row.counters.*field));
    windows["held_bytes"].push_back(held_bytes(trial.device) - start);
    for (const auto& [name, value] : run.counters()) windows["run." + name].push_back(value);
  }
  return windows;
}

void add_windows(Measures& measures, const std::string& variant, const Windows& windows, std::size_t warm_up) {
  for (const auto& [name, values] : windows) {
    const auto settled = values.begin() + static_cast<std::ptrdiff_t>(warm_up);
    const auto [least, most] = std::minmax_element(settled, values.end());
    measures[variant + ".growth." + name] = {*most - *least, ""};
    measures[variant + ".per_window." + name] = {*std::min_element(settled, values.end()), ""};
    double rising = 0;
    for (auto value = settled + 1; value != values.end(); ++value) rising += *value > *(value - 1) ? 1 : 0;
    measures[variant + ".rising_windows." + name] = {rising, ""};
  }
}

void check(const ScenarioConfig& config) {
  if (config.count("windows") < config.count("warm_up_windows") + 2)
    throw Error(ErrorKind::kOutOfRange, config.file + ": windows", std::to_string(config.count("windows")),
                "give at least two more than warm_up_windows");
}

Findings run(const Trial& trial) {
  const auto workload = trial.source.prepare(trial.config);
  TrackedAllocator::instance();  // before what is to be counted is made
  Findings findings;
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const auto one = workload->make(trial.setting(variant));
    VariantRow row{variant, one->items(), 1, {}, {}, nlohmann::json::array()};
    const auto windows = take_windows(*one, trial, row);
    add_windows(findings.measures, to_string(variant), windows,
                static_cast<std::size_t>(trial.config.count("warm_up_windows")));
    findings.measures[to_string(variant) + ".non_finite"] = {non_finite(one->outputs()), ""};
    for (const auto& [name, unit] : {std::pair{"held_bytes", "B"}, {"peak_bytes", "B"}, {"dispatches", "a window"}})
      row.timelines.push_back({{"name", name}, {"unit", unit}, {"values", windows.at(name)}});
    findings.variants.push_back(to_json(row));
  }
  return findings;
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "cost and held memory window by window: flat in the optimized run";
  kind.keys = {count_key("windows", 4, 100000, "how many windows"),
               count_key("steps_per_window", 2, 100000, "steps in each: one is timed, the others are counted"),
               count_key("warm_up_windows", 1, 100, "windows before anything is judged").or_else(2)};
  for (const auto half : {Half::kBaseline, Half::kOptimized}) {
    const std::string variant = to_string(half);
    kind.measures.push_back({variant + ".growth.*", half, "largest less smallest window after warm-up"});
    kind.measures.push_back({variant + ".rising_windows.*", half, "windows after warm-up above the one before"});
    kind.measures.push_back({variant + ".per_window.*", half, "the smallest window after warm-up"});
    kind.measures.push_back({variant + ".non_finite", half, "NaN and Inf in the last step's outputs"});
  }
  kind.measures.push_back(
      {"optimized.growth.held_bytes", Half::kOptimized, "tensor bytes held at a window's end", true});
  kind.measures.push_back({"optimized.growth.dispatches", Half::kOptimized, "operators a window", true});
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::growth
