// Kind `stability`: many windows, or extreme ones, each counted: what is not finite, how large it becomes, how the
// losses go, and whether a window and an epoch go on costing the same.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "harness/timing/statistics.h"
#include "scenarios/runner/curve.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/memory_cap.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench::experiments::stability {
namespace {

// By quantity, a value a window.
using Curves = std::map<std::string, std::vector<double>>;

constexpr std::size_t kFirstWindows = 3;  // after warm-up, whose median time later ones are held to

struct Course {
  Curves counts, readings, losses;  // counts: of the window, and what the run has counted so far
  std::vector<double> window_s;     // each window's time, of a device whose times are judged
  double not_finite = 0;
  std::string first_not_finite;
  std::int64_t completed = 0;
  std::string out_of_memory;
};

// The scenario's start, one tensor of it a number of times as large.
std::unique_ptr<TrainingRun> start(const Trial& trial, const Workload& workload, Variant variant) {
  auto run = workload.make(trial.setting(variant));
  const auto name = trial.config.text("scaled");
  if (name != "nothing") run->set_state({{name, run->state()[name].mul(trial.config.real("scale"))}});
  return run;
}

void look_at(TrainingRun& run, const ScenarioConfig& config, std::int64_t window, Course& course) {
  const auto note = [&](const std::string& what, double count) {
    course.not_finite += count;
    if (count > 0 && course.first_not_finite.empty())
      course.first_not_finite = what + " in window " + std::to_string(window);
  };
  const NamedTensors outputs = run.outputs();
  for (const auto& [name, tensor] : outputs) note(name, non_finite(tensor));
  for (const auto& [name, tensor] : run.state()) note(name, non_finite(tensor));
  for (const auto& [name, value] : run.losses()) {
    note(name, std::isfinite(value) ? 0 : 1);
    course.losses[name].push_back(value);
  }
  for (const auto& [name, value] : run.readings()) {
    note(name, std::isfinite(value) ? 0 : 1);
    course.readings[name].push_back(value);
  }
  for (const auto& name : config.texts("bounded"))
    course.readings[name].push_back(outputs[name].abs().max().item<double>());
}

// Times of a host beside which other things run say nothing of a run of windows.
bool times_are_judged(const Trial& trial) { return trial.device.is_cuda() || trial.source.tells_device_time; }

void take_windows(TrainingRun& run, const Trial& trial, std::int64_t windows, double budget, Course& course,
                  VariantRow& row) {
  const double start_bytes = held_bytes(trial.device);
  const MemoryPeak peak(trial.device);
  for (std::int64_t window = 1; window <= windows; ++window) {
    {
      // Not around what looks at the results.
      std::optional<MemoryCap> cap;
      if (budget > 0) cap.emplace(static_cast<std::int64_t>(start_bytes + budget));
      CounterScope scope;
      const auto before = run.device_time();
      try {
        row.samples_s.push_back(timed_step(run, trial.device));
        if (budget > 0 && !trial.device.is_cpu() && peak.bytes() - start_bytes > budget)
          throw Error(ErrorKind::kOutOfMemory, "memory budget", std::to_string(peak.bytes() - start_bytes), "exceeded");
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kOutOfMemory) throw;
        course.out_of_memory = "window " + std::to_string(window) + ": " + error.what();
        return;
      }
      row.counters = scope.snapshot();
      const auto after = run.device_time();  // a simulated device's own clock
      course.window_s.push_back(after ? after->wall_s - before->wall_s : row.samples_s.back());
    }
    for (const auto& [name, field] : counter_fields())
      course.counts[name].push_back(static_cast<double>(row.counters.*field));
    course.counts["held_bytes"].push_back(held_bytes(trial.device) - start_bytes);
    for (const auto& [name, value] : run.counters()) course.counts["run." + name].push_back(value);
    look_at(run, trial.config, window, course);
    ++course.completed;
  }
}

double spread(const std::vector<double>& values, std::size_t from) {
  if (values.size() <= from) return 0;
  const auto [least, most] = std::minmax_element(values.begin() + static_cast<std::ptrdiff_t>(from), values.end());
  return *most - *least;
}

// After the warm-up, the sum of each epoch's windows; of what the run counts itself, what an epoch added.
std::vector<double> by_epoch(const std::string& name, const std::vector<double>& values, const ScenarioConfig& config) {
  const auto warm_up = static_cast<std::size_t>(config.count("warm_up_windows")),
             of_epoch = static_cast<std::size_t>(config.count("windows_of_epoch"));
  const bool running = name.starts_with("run.");
  std::vector<double> epochs;
  for (std::size_t begin = warm_up; of_epoch > 0 && begin + of_epoch <= values.size(); begin += of_epoch) {
    double sum = running ? values[begin + of_epoch - 1] - (begin > 0 ? values[begin - 1] : 0) : 0;
    for (std::size_t i = begin; !running && i < begin + of_epoch; ++i) sum += values[i];
    epochs.push_back(sum);
  }
  return epochs;
}

// How times drift: the slowest window after warm-up over the median of the first ones of them, and how far the longest
// epoch is from the shortest, of that.
void add_times(Measures& measures, const std::string& prefix, const Course& course, const Trial& trial) {
  const Measure nobody = {std::nullopt, "no GPU: how long windows take is judged on one only"};
  const auto warm_up = static_cast<std::size_t>(trial.config.count("warm_up_windows"));
  const auto& all = course.window_s;
  if (all.size() > warm_up + kFirstWindows) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(warm_up);
    const double slowest = *std::max_element(first, all.end());
    measures[prefix + "slowest_window"] =
        times_are_judged(trial) ? Measure{slowest / median({first, first + kFirstWindows}), ""} : nobody;
  }
  if (const auto epochs = by_epoch("window_s", all, trial.config); epochs.size() > 1)
    measures[prefix + "epoch_time_spread"] =
        times_are_judged(trial) ? Measure{spread(epochs, 0) / *std::min_element(epochs.begin(), epochs.end()), ""}
                                : nobody;
}

void add_course(Findings& findings, Variant variant, const Course& course, VariantRow& row, const Trial& trial) {
  const auto& config = trial.config;
  auto& measures = findings.measures;
  const std::string prefix = to_string(variant) + ".";
  measures[prefix + "completed_windows"] = {static_cast<double>(course.completed), course.out_of_memory};
  measures[prefix + "over_budget"] = {course.out_of_memory.empty() ? 0.0 : 1.0, course.out_of_memory};
  // What ended early was not looked at after its end: no window without a NaN is no window.
  const bool ended = !course.out_of_memory.empty() && variant == Variant::kOptimized;
  measures[prefix + "non_finite"] = {ended ? kInfinite : course.not_finite,
                                     ended ? "it ended early: " + course.out_of_memory : course.first_not_finite};
  const auto warm_up = static_cast<std::size_t>(config.count("warm_up_windows"));
  for (const auto& [name, values] : course.counts) {
    measures[prefix + "growth." + name] = {spread(values, warm_up), ""};
    if (values.size() > warm_up) {
      const auto settled = values.begin() + static_cast<std::ptrdiff_t>(warm_up);
      measures[prefix + "per_window." + name] = {*std::min_element(settled, values.end()), ""};
      double rising = 0;
      for (auto value = settled + 1; value != values.end(); ++value) rising += *value > *(value - 1) ? 1 : 0;
      measures[prefix + "rising_windows." + name] = {rising, ""};
    }
    const auto epochs = by_epoch(name, values, config);
    if (epochs.size() > 1) measures[prefix + "epoch_growth." + name] = {spread(epochs, 0), ""};
    if (name.starts_with("run.")) measures[prefix + name] = {values.back(), ""};
  }
  add_times(measures, prefix, course, trial);
  const auto ends = static_cast<std::size_t>(config.count("ends"));
  for (const auto* curves : {&course.losses, &course.readings})
    for (const auto& [name, values] : *curves) {
      double largest = 0, least = kInfinite;
      for (const double value : values) {
        largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : kInfinite;
        least = std::min(least, value);
      }
      measures[prefix + "largest." + name] = {largest, ""};
      measures[prefix + "least." + name] = {least, ""};
      row.timelines.push_back({{"name", name}, {"unit", name.starts_with("tape_") ? "B" : ""}, {"values", values}});
    }
  for (const auto& [name, values] : course.losses) {
    measures[prefix + "last_over_first." + name] = {last_over_first(values, ends), ""};
    measures[prefix + "jumps." + name] = {jumps(values, ends, config.real("jump_factor")), ""};
  }
  for (const auto& [name, unit] : {std::pair{"held_bytes", "B"},
                                   {"peak_bytes", "B"},
                                   {"allocations", "a window"},
                                   {"dispatches", "a window"},
                                   {"scalar_reads", "a window"}})
    if (const auto found = course.counts.find(name); found != course.counts.end())
      row.timelines.push_back({{"name", name}, {"unit", unit}, {"values", found->second}});
}

// What a run that ended before its time has no figure of: not judged, beside the end that is.
void name_missing(Measures& measures, Variant variant, const Course& course, const ScenarioConfig& config) {
  if (course.out_of_memory.empty()) return;
  for (const auto& criterion : config.criteria)
    if (criterion.measure.starts_with(to_string(variant) + "."))
      measures.try_emplace(criterion.measure, Measure{std::nullopt, course.out_of_memory});
}

// How far apart both variants' losses are, of the baseline's: at most, and in the last window that both have.
void add_distances(Measures& measures, const Curves& baseline, const Curves& optimized) {
  for (const auto& [name, ours] : optimized) {
    const auto found = baseline.find(name);
    if (found == baseline.end()) continue;
    double most = 0, last = kInfinite;
    for (std::size_t i = 0; i < std::min(ours.size(), found->second.size()); ++i) {
      const double theirs = found->second[i], apart = std::abs(ours[i] - theirs) / std::abs(theirs);
      last = std::isfinite(apart) ? apart : kInfinite;
      most = std::max(most, last);
    }
    measures["optimized.apart." + name] = {most, ""};
    measures["optimized.last_apart." + name] = {last, ""};
  }
}

std::int64_t windows_of(const ScenarioConfig& config, Variant variant) {
  const auto fewer = config.count("baseline_windows");
  return variant == Variant::kBaseline && fewer > 0 ? fewer : config.count("windows");
}

// Bytes that the first window of a fresh run takes beyond what the run holds at its start.
double first_window_bytes(const Trial& trial, const Workload& workload, Variant variant) {
  const auto run = start(trial, workload, variant);
  const double before = held_bytes(trial.device);
  const MemoryPeak peak(trial.device);
  run->step();
  wait_for(trial.device);
  return peak.bytes() - before;
}

Findings run(const Trial& trial) {
  const auto& config = trial.config;
  const auto workload = trial.source.prepare(config);
  TrackedAllocator::instance();  // before what is to be counted is made
  Findings findings;
  Course courses[2];
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const double of_memory = config.real("windows_of_memory"),
                 given = static_cast<double>(config.count("budget_bytes"));
    const double budget =
        of_memory == 0 ? given : std::max(1.0, of_memory * first_window_bytes(trial, *workload, variant));
    const auto one = start(trial, *workload, variant);
    VariantRow row{variant, one->items(), 1, {}, {}, nlohmann::json::array()};
    Course course;
    take_windows(*one, trial, windows_of(config, variant), budget, course, row);
    add_course(findings, variant, course, row, trial);
    courses[variant == Variant::kOptimized] = std::move(course);
    findings.variants.push_back(to_json(row));
  }
  add_distances(findings.measures, courses[0].losses, courses[1].losses);
  name_missing(findings.measures, Variant::kBaseline, courses[0], config);
  name_missing(findings.measures, Variant::kOptimized, courses[1], config);
  return findings;
}

std::int64_t settled_windows(const ScenarioConfig& config, Variant variant) {
  return windows_of(config, variant) - config.count("warm_up_windows");
}

void check_epochs(const ScenarioConfig& config, Variant variant, const std::string& field, const std::string& measure) {
  const std::int64_t of_epoch = config.count("windows_of_epoch"), settled = settled_windows(config, variant);
  if (of_epoch > 0 && settled >= 2 * of_epoch) return;
  throw Error(ErrorKind::kOutOfRange, field, measure,
              of_epoch == 0 ? "no epoch is measured: give windows_of_epoch"
                            : "epochs are compared from two on: give windows for " + std::to_string(2 * of_epoch) +
                                  " after warm-up, there are " + std::to_string(settled));
}

// Of what is counted or timed: no such count, or too few windows or epochs to compare.
void check_counted(const ScenarioConfig& config, Variant variant, std::size_t number) {
  const auto& measure = config.criteria[number].measure;
  const std::string field = config.file + ": criteria[" + std::to_string(number) + "]: measure";
  for (const std::string family : {"growth.", "per_window.", "rising_windows.", "epoch_growth."}) {
    const std::string stem = to_string(variant) + "." + family;
    if (!measure.starts_with(stem)) continue;
    std::vector<std::string> names = {"held_bytes"};
    for (const auto& one : counter_fields()) names.push_back(one.first);
    const std::string name = measure.substr(stem.size());
    if (!name.starts_with("run.") && std::find(names.begin(), names.end(), name) == names.end())
      throw Error(ErrorKind::kUnknownName, field, measure, "no such count is taken" + did_you_mean(name, names));
    if (family == "epoch_growth.") check_epochs(config, variant, field, measure);
  }
  if (measure == to_string(variant) + ".epoch_time_spread") check_epochs(config, variant, field, measure);
  const std::int64_t settled = settled_windows(config, variant);
  if (measure == to_string(variant) + ".slowest_window" && settled <= static_cast<std::int64_t>(kFirstWindows))
    throw Error(ErrorKind::kOutOfRange, field, measure,
                "the first " + std::to_string(kFirstWindows) +
                    " windows after warm-up are what later ones are held to, there are " + std::to_string(settled));
}

void check(const ScenarioConfig& config) {
  for (std::size_t i = 0; i < config.criteria.size(); ++i)
    for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) check_counted(config, variant, i);
  const auto refuse = [&](const char* key, const std::string& remedy) {
    throw Error(ErrorKind::kOutOfRange, config.file + ": " + key, config.keys.at(key).dump(), remedy);
  };
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized})
    if (windows_of(config, variant) < config.count("warm_up_windows") + 2)
      refuse(variant == Variant::kBaseline && config.count("baseline_windows") > 0 ? "baseline_windows" : "windows",
             "give at least two more than warm_up_windows");
  if (config.count("baseline_windows") > config.count("windows")) refuse("baseline_windows", "give at most windows");
  const bool scales = config.text("scaled") != "nothing";
  if (scales == (config.real("scale") == 1))
    refuse("scale", scales ? "give a factor that is not 1, or leave 'scaled' out" : "say in 'scaled' of which tensor");
  const bool judges_curve = std::any_of(config.criteria.begin(), config.criteria.end(), [](const Criterion& one) {
    return one.measure.starts_with("optimized.last_over_first.") || one.measure.starts_with("optimized.jumps.");
  });
  if (judges_curve && 2 * config.count("ends") > config.count("windows"))
    refuse("ends", "both ends are compared: give at most half of the windows");
  if (2 * config.count("windows_of_epoch") > config.count("windows") - config.count("warm_up_windows"))
    refuse("windows_of_epoch", "two epochs are compared at least: give at most half of the windows after warm-up");
  if (config.count("budget_bytes") > 0 && config.real("windows_of_memory") > 0)
    refuse("budget_bytes", "there is a cap by windows_of_memory: give one of both");
  if (config.real("windows_of_memory") >= static_cast<double>(windows_of(config, Variant::kBaseline)))
    refuse("windows_of_memory", "give less than the baseline's windows: a run that frees nothing would stay within it");
}

std::vector<MeasureSpec> measures_of(Half half) {
  const std::string variant = to_string(half);
  const bool optimized = half == Half::kOptimized;
  return {
      {variant + ".non_finite", half, "NaN and Inf in losses, outputs, readings and state, over all windows",
       optimized},
      {variant + ".completed_windows", half, "windows within the budget, where there is one"},
      {variant + ".over_budget", half, "1 where an allocation was refused", false, Values::kShare},
      {variant + ".growth.*", half, "largest less smallest window after warm-up"},
      {variant + ".per_window.*", half, "the smallest window after warm-up"},
      {variant + ".rising_windows.*", half, "windows after warm-up above the one before"},
      {variant + ".epoch_growth.*", half, "largest less smallest sum of an epoch after warm-up"},
      {variant + ".slowest_window", half,
       "of a card: the slowest window after warm-up over the median of the first three of them"},
      {variant + ".epoch_time_spread", half, "of a card: longest less shortest epoch after warm-up, over the latter"},
      {variant + ".run.*", half, "what the run has counted itself at the end"},
      {variant + ".largest.*", half, "the largest magnitude of a loss, reading or bounded output in any window"},
      {variant + ".least.*", half, "the smallest value of these", false, Values::kAny},
      {variant + ".last_over_first.*", half, "a loss: the median of its last windows over that of its first", false,
       Values::kNonNegative, Names::kLosses},
      {variant + ".jumps.*", half, "a loss: changes beyond jump_factor times the running median change", false,
       Values::kNonNegative, Names::kLosses}};
}

}  // namespace

Experiment make_experiment() {
  constexpr double kMostWindows = 100000;
  Experiment kind;
  kind.proves = "many windows or extreme ones: finite, bounded, losses that fall smoothly, the same cost to the end";
  kind.keys = {
      count_key("windows", 4, kMostWindows, "windows, each counted and timed"),
      count_key("baseline_windows", 0, kMostWindows, "the baseline's, where it is to have fewer; 0: as many")
          .or_else(0),
      count_key("warm_up_windows", 0, 100, "windows before growth is judged").or_else(2),
      count_key("windows_of_epoch", 0, kMostWindows, "windows of an epoch, the first after warm-up; 0: none")
          .or_else(0),
      count_key("ends", 1, 1000, "windows at each end whose median loss is compared; changes of a running median")
          .or_else(20),
      real_key("jump_factor", 1, 1000, "median changes from which on a change is a jump").or_else(5),
      text_key("scaled", "a state tensor that is scaled at the start, or 'nothing'").or_else("nothing"),
      real_key("scale", 1e-6, 1e6, "its factor").or_else(1),
      texts_key("bounded", 0, "outputs whose largest magnitude is taken, too")
          .or_else(nlohmann::json::array())
          .naming_outputs(),
      count_key("budget_bytes", 0, 0x1p50, "a cap of so many bytes beyond those held at the start; 0: none").or_else(0),
      real_key("windows_of_memory", 0, 1000, "a cap of so many times what a variant's first window takes; 0: none")
          .or_else(0)};
  for (const auto half : {Half::kBaseline, Half::kOptimized})
    for (auto& measure : measures_of(half)) kind.measures.push_back(std::move(measure));
  kind.measures.push_back(
      {"optimized.growth.held_bytes", Half::kOptimized, "tensor bytes held at a window's end", true});
  kind.measures.push_back({"optimized.growth.dispatches", Half::kOptimized, "operators of a window", true});
  kind.measures.push_back({"optimized.apart.*", Half::kOptimized, "a loss: |optimized - baseline| / |baseline|, most",
                           false, Values::kNonNegative, Names::kLosses});
  kind.measures.push_back({"optimized.last_apart.*", Half::kOptimized, "the same in the last window that both have",
                           false, Values::kNonNegative, Names::kLosses});
  kind.needs_state = true;
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::stability
