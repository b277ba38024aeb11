// Kind `memory_budget`: steps under a cap of bytes. The allocator refuses what would exceed it, so that running out of
// memory is the same on every machine.
#include <algorithm>

#include "scenarios/runner/experiment.h"
#include "scenarios/runner/memory_cap.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"

namespace twinbench::experiments::memory_budget {
namespace {

// A run's steps one by one: whole ones, or micro-batches of windows.
class Steps {
 public:
  Steps(TrainingRun& run, std::int64_t rows) : run_(run), rows_(std::min(rows, run.items())) {}
  void next() {
    if (rows_ == 0) return run_.step();
    auto& window = windows_of(run_);
    if (begin_ == 0) window.begin_window();
    window.micro_step(begin_, std::min(rows_, run_.items() - begin_));
    begin_ += rows_;
    if (begin_ < run_.items()) return;
    window.finish_window();
    begin_ = 0;
  }

 private:
  TrainingRun& run_;
  std::int64_t rows_, begin_ = 0;
};

// Bytes that the first step of a fresh run takes beyond what the run holds at its start: the specification's T.
double first_step_bytes(const Workload& workload, const RunSetting& setting, std::int64_t rows, c10::Device device) {
  const auto run = workload.make(setting);
  Steps steps(*run, rows);
  const double before = held_bytes(device);
  const MemoryPeak peak(device);
  steps.next();
  wait_for(device);
  return peak.bytes() - before;
}

// Least squares: bytes a step.
double slope(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, above = 0, below = 0;
  for (const double value : values) mean += value / n;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - (n - 1) / 2;
    above += x * (values[i] - mean);
    below += x * x;
  }
  return below == 0 ? 0 : above / below;
}

void run_variant(const Trial& trial, const Workload& workload, Variant variant, Findings& findings) {
  const auto& config = trial.config;
  const auto setting = trial.setting(variant);
  const auto rows = config.count("micro_batch_rows"), given = config.count("budget_bytes");
  const double budget = given > 0
                            ? static_cast<double>(given)
                            : config.real("steps_of_memory") * first_step_bytes(workload, setting, rows, trial.device);
  const auto run = workload.make(setting);
  Steps steps(*run, rows);
  VariantRow row{variant, run->items(), 1, {}, {}, nlohmann::json::array()};
  const double start = held_bytes(trial.device);
  const MemoryPeak peak(trial.device);
  std::vector<double> held;
  std::int64_t failed_at = 0;
  std::string reason;
  {
    // Of the host's bytes; a card's are looked at after each step.
    const MemoryCap cap(static_cast<std::int64_t>(TrackedAllocator::instance().totals().live_bytes + budget));
    for (std::int64_t i = 1; i <= config.count("steps") && failed_at == 0; ++i) {
      try {
        CounterScope scope;
        steps.next();
        wait_for(trial.device);
        row.counters = scope.snapshot();
        if (peak.bytes() - start > budget)
          throw Error(ErrorKind::kOutOfMemory, "memory budget", std::to_string(peak.bytes() - start), "exceeded");
        held.push_back(held_bytes(trial.device) - start);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kOutOfMemory) throw;
        failed_at = i;
        reason = "step " + std::to_string(i) + ": " + error.what();
      }
    }
  }
  const auto prefix = to_string(variant) + ".";
  auto& measures = findings.measures;
  const auto warm = std::min<std::size_t>(held.size(), static_cast<std::size_t>(config.count("warm_up_steps")));
  measures[prefix + "completed_steps"] = {static_cast<double>(held.size()), reason};
  measures[prefix + "over_budget"] = {failed_at > 0 ? 1.0 : 0.0, reason};
  measures[prefix + "failed_at_step"] = {static_cast<double>(failed_at), reason};
  measures[prefix + "budget_bytes"] = {budget, ""};
  measures[prefix + "peak_bytes"] = {peak.bytes() - start, ""};
  measures[prefix + "peak_of_budget"] = {(peak.bytes() - start) / budget, ""};
  measures[prefix + "slope_bytes"] = {slope({held.begin() + static_cast<std::ptrdiff_t>(warm), held.end()}), ""};
  if (failed_at == 0)
    measures[prefix + "non_finite"] = {non_finite(run->outputs()), ""};
  else
    measures[prefix + "non_finite"] = {std::nullopt, "it ran out of memory"};
  row.timelines.push_back({{"name", "held_bytes"}, {"unit", "B"}, {"values", held}});
  findings.variants.push_back(to_json(row));
}

void check(const ScenarioConfig& config) {
  if (config.count("steps") < config.count("warm_up_steps") + 2)
    throw Error(ErrorKind::kOutOfRange, config.file + ": steps", std::to_string(config.count("steps")),
                "give at least two more than warm_up_steps: a slope needs them");
  if (config.count("budget_bytes") == 0 && config.real("steps_of_memory") >= config.real("steps"))
    throw Error(ErrorKind::kOutOfRange, config.file + ": steps_of_memory", config.keys.at("steps_of_memory").dump(),
                "give less than steps, " + std::to_string(config.count("steps")) +
                    ": a run that frees nothing would stay within it");
}

Findings run(const Trial& trial) {
  if (trial.config.count("micro_batch_rows") > 0 && !trial.source.gives_windows)
    throw Error(ErrorKind::kOutOfRange, trial.config.file + ": micro_batch_rows",
                std::to_string(trial.config.count("micro_batch_rows")),
                "the run " + trial.source.id() + " has no windows to cut; leave the key out");
  const auto workload = trial.source.prepare(trial.config);
  TrackedAllocator::instance();  // before what is to be counted is made
  Findings findings;
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) run_variant(trial, *workload, variant, findings);
  return findings;
}

}  // namespace

Experiment make_experiment() {
  constexpr double kMostBytes = 0x1p50;
  Experiment kind;
  kind.proves = "steps under a cap of bytes: the optimized run completes them, what the baseline's peak comes to";
  kind.keys = {
      count_key("steps", 3, 100000, "steps, or micro-batches"),
      count_key("micro_batch_rows", 0, 1e9, "rows of a micro-batch; 0: whole steps").or_else(0),
      count_key("budget_bytes", 0, kMostBytes, "bytes beyond those held at the start; 0: by steps_of_memory")
          .or_else(0),
      real_key("steps_of_memory", 0.01, 1000, "the budget in bytes that a variant's first step takes").or_else(1.5),
      count_key("warm_up_steps", 0, 1000, "steps before the slope is taken").or_else(2)};
  for (const auto half : {Half::kBaseline, Half::kOptimized}) {
    const std::string variant = to_string(half);
    const bool optimized = half == Half::kOptimized;
    kind.measures.push_back(
        {variant + ".over_budget", half, "1 where an allocation was refused", optimized, Values::kShare});
    kind.measures.push_back({variant + ".completed_steps", half, "steps within the budget", optimized});
    kind.measures.push_back({variant + ".failed_at_step", half, "the first step beyond it; 0: none"});
    kind.measures.push_back({variant + ".budget_bytes", half, "the budget beyond what is held at the start"});
    kind.measures.push_back({variant + ".peak_bytes", half, "most bytes beyond what is held at the start"});
    kind.measures.push_back({variant + ".peak_of_budget", half, "peak over budget; a refused allocation is not in it",
                             false, Values::kShare});
    kind.measures.push_back(
        {variant + ".slope_bytes", half, "bytes by which a step's end rises", optimized, Values::kAny});
    kind.measures.push_back({variant + ".non_finite", half, "NaN and Inf in the last step's outputs"});
  }
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::memory_budget
