// Kind `utilisation`: which share of a window's time the device works, window after window.
#include <algorithm>
#include <functional>
#include <numeric>

#include "harness/gpu/device_activity.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"

namespace twinbench::experiments::utilisation {
namespace {

// Shares of the windows after the warm-up, or why there are none.
struct Shares {
  std::vector<double> each;
  std::string reason;
};

// Seconds that the device works in `steps` steps. Nothing, and the reason, where nobody can say.
struct Busy {
  std::optional<double> seconds;
  std::string reason;
};

double timed_window(TrainingRun& run, std::int64_t steps, c10::Device device) {
  double seconds = 0;
  for (std::int64_t i = 0; i < steps; ++i) seconds += timed_step(run, device);
  return seconds;
}

// Time of one window untraced, work of the next one traced: a trace costs the host microseconds a launch.
Busy traced_window(TrainingRun& run, std::int64_t steps, c10::Device device) {
  const TraceOptions options{.graph_nodes = false, .finish = [device] { wait_for(device); }};
  const DeviceActivity activity = traced([&run] { run.step(); }, steps, options);
  if (!activity.complete()) return {std::nullopt, activity.reason};
  return {activity.busy_s, ""};
}

Shares watch(TrainingRun& run, const Trial& trial, VariantRow& row) {
  const auto steps = trial.config.count("steps_per_window"), fewer = trial.config.count("baseline_windows");
  const bool few = row.variant == Variant::kBaseline && fewer > 0;
  const auto windows = few ? fewer : trial.config.count("windows"),
             warm_up = few ? 0 : trial.config.count("warm_up_windows");
  Shares shares;
  for (std::int64_t w = 0; w < windows; ++w) {
    const auto before = run.device_time();
    double wall = timed_window(run, steps, trial.device);
    Busy busy;
    if (const auto after = run.device_time()) {  // a simulated device's own clock
      wall = after->wall_s - before->wall_s;
      busy.seconds = after->busy_s - before->busy_s;
    } else {
      busy = traced_window(run, steps, trial.device);
    }
    if (!busy.seconds) return {{}, busy.reason};
    row.samples_s.push_back(wall / static_cast<double>(steps));
    if (w >= warm_up) shares.each.push_back(wall > 0 ? std::min(1.0, *busy.seconds / wall) : 0.0);
  }
  return shares;
}

void add_shares(Measures& measures, const std::string& prefix, const Shares& shares) {
  const auto put = [&](const char* name, const std::function<double()>& value) {
    measures[prefix + name] = shares.reason.empty() ? Measure{value(), ""} : Measure{std::nullopt, shares.reason};
  };
  const auto range = std::minmax_element(shares.each.begin(), shares.each.end());
  put("busy_mean", [&] {
    return std::accumulate(shares.each.begin(), shares.each.end(), 0.0) / static_cast<double>(shares.each.size());
  });
  put("busy_least", [&] { return *range.first; });
  put("busy_spread", [&] { return *range.second - *range.first; });
}

void check(const ScenarioConfig& config) {
  if (config.count("windows") < config.count("warm_up_windows") + 2)
    throw Error(ErrorKind::kOutOfRange, config.file + ": windows", std::to_string(config.count("windows")),
                "give at least two more than warm_up_windows: a spread needs them");
}

Findings run(const Trial& trial) {
  const auto& config = trial.config;
  Findings findings;
  auto& measures = findings.measures;
  // Nothing is run that nobody can judge.
  if (!trial.device.is_cuda() && !trial.source.tells_device_time) {
    const Shares none{{}, "no GPU: how busy a device is can be measured on one only"};
    for (const auto variant : {Variant::kBaseline, Variant::kOptimized})
      add_shares(measures, to_string(variant) + ".", none);
    measures["optimized.non_finite"] = {std::nullopt, "no GPU: nothing was run"};
    return findings;
  }
  const auto workload = trial.source.prepare(config);
  const auto few = config.count("baseline_items") == 0 ? workload->items() : config.count("baseline_items");
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const auto one = workload->make(trial.setting(variant, variant == Variant::kBaseline ? few : 0));
    VariantRow row{variant, one->items(), 1, {}, {}, nlohmann::json::array()};
    const Shares shares = watch(*one, trial, row);
    add_shares(measures, to_string(variant) + ".", shares);
    row.counters = counted(*one, 1, trial.device);
    row.timelines.push_back({{"name", "busy_share"}, {"unit", "of a window"}, {"values", shares.each}});
    findings.variants.push_back(to_json(row));
    if (variant == Variant::kOptimized) measures["optimized.non_finite"] = {non_finite(one->outputs()), ""};
  }
  return findings;
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "the share of its windows in which the device works: high, and the same in each";
  kind.keys = {
      count_key("windows", 2, 100000, "windows"),
      count_key("steps_per_window", 1, 10000, "steps of a window").or_else(1),
      count_key("warm_up_windows", 0, 1000, "windows that are not judged").or_else(2),
      count_key("baseline_windows", 0, 100000, "the baseline's, all judged, where it has fewer; 0: as many").or_else(0),
      count_key("baseline_items", 0, 1e9, "items that the baseline takes; 0: all").or_else(0)};
  for (const auto half : {Half::kBaseline, Half::kOptimized}) {
    const std::string variant = to_string(half);
    const bool optimized = half == Half::kOptimized;
    kind.measures.push_back(
        {variant + ".busy_mean", half, "mean over windows of the busy share", true, Values::kShare});
    kind.measures.push_back({variant + ".busy_least", half, "the least busy window's", false, Values::kShare});
    kind.measures.push_back({variant + ".busy_spread", half, "the busiest window's share less the least busy one's",
                             optimized, Values::kShare});
  }
  kind.measures.push_back({"optimized.non_finite", Half::kOptimized, "NaN and Inf in the last step's outputs"});
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::utilisation
