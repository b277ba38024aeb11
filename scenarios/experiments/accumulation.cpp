// Kind `accumulation`: one optimizer window cut into micro-batches of several sizes gives one gradient, one update, and
// needs the memory of one micro-batch.
#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "harness/memory/tracked_allocator.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"

namespace twinbench::experiments::accumulation {
namespace {

// What the windows of one run gave, cut into micro-batches of `rows`.
struct Cut {
  std::vector<NamedTensors> gradients;    // of each window
  NamedTensors parameters;                // after the last
  std::vector<CounterSnapshot> counters;  // of each full micro-batch of the last window but its first
  double peak_growth = 0;                 // bytes: a window's peak beyond that of its first micro-batch
  std::int64_t micro_steps = 0;           // in a window
  std::vector<double> seconds;            // of each window
};

Cut take(WindowRun& run, std::int64_t rows, std::int64_t windows, c10::Device device) {
  Cut cut;
  auto& allocator = TrackedAllocator::instance();
  for (std::int64_t w = 0; w < windows; ++w) {
    const auto start = std::chrono::steady_clock::now();
    run.begin_window();
    const int meter = allocator.open_peak();
    std::int64_t first_peak = 0;
    cut.counters.clear();
    cut.micro_steps = 0;
    for (std::int64_t begin = 0; begin < run.items(); begin += rows) {
      const auto count = std::min(rows, run.items() - begin);
      CounterScope scope;
      run.micro_step(begin, count);
      wait_for(device);
      if (begin > 0 && count == rows) cut.counters.push_back(scope.snapshot());
      if (begin == 0) first_peak = allocator.peak(meter);
      ++cut.micro_steps;
    }
    cut.peak_growth = std::max(cut.peak_growth, static_cast<double>(allocator.peak(meter) - first_peak));
    allocator.close_peak(meter);
    cut.gradients.push_back(copies_of(run.gradients()));
    run.finish_window();
    wait_for(device);
    cut.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  cut.parameters = copies_of(run.parameters());
  return cut;
}

double worst_gradient(const Cut& cut, const Cut& whole, double relative) {
  double worst = 0;
  for (std::size_t w = 0; w < cut.gradients.size(); ++w)
    worst = std::max(worst, norm_ratio(cut.gradients[w], whole.gradients[w], relative));
  return worst;
}

void add_micro_counters(Measures& measures, const std::string& prefix, const Cut& cut) {
  for (const auto& [name, field] : counter_fields()) {
    const auto less = [f = field](const auto& a, const auto& b) { return a.*f < b.*f; };
    const auto [low, high] = std::minmax_element(cut.counters.begin(), cut.counters.end(), less);
    const double most = static_cast<double>((*high).*field), least = static_cast<double>((*low).*field);
    const auto raise = [&](const std::string& measure, double value) {
      auto& kept = measures[prefix + measure + name].value;
      kept = std::max(kept.value_or(0), value);
    };
    raise("per_micro.", most);
    raise("micro_growth.", most - least);
  }
}

Findings run(const Trial& trial) {
  const auto& config = trial.config;
  const auto windows = config.count("windows");
  const auto relative = config.real("relative");
  const auto workload = trial.source.prepare(config);
  TrackedAllocator::instance();  // before what is to be counted is made
  const auto taken = [&](const RunSetting& setting, std::int64_t rows, std::int64_t* items = nullptr) {
    const auto one = workload->make(setting);
    if (items != nullptr) *items = one->items();
    return take(windows_of(*one), std::min(rows, one->items()), windows, trial.device);
  };
  const auto oracle = taken(trial.oracle(), workload->items());
  Findings findings;
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const auto prefix = to_string(variant) + ".";
    auto& measures = findings.measures;
    VariantRow row{variant, 0, 1, {}, {}, nlohmann::json::array()};
    const auto whole = taken(trial.setting(variant), workload->items(), &row.items);
    double gradient = 0, parameter = 0, peak = 0;
    std::string where;
    for (const auto rows : config.counts("micro_batch_rows")) {
      if (rows >= row.items)
        throw Error(ErrorKind::kOutOfRange, config.file + ": micro_batch_rows", std::to_string(rows),
                    "give fewer than the window's " + std::to_string(row.items) + " rows");
      const auto cut = taken(trial.setting(variant), rows);
      const double ratio = worst_gradient(cut, whole, relative);
      if (ratio > gradient) where = "in micro-batches of " + std::to_string(rows);
      gradient = std::max(gradient, ratio);
      parameter = std::max(parameter, norm_ratio(cut.parameters, whole.parameters, relative));
      peak = std::max(peak, cut.peak_growth);
      row.samples_s = cut.seconds;
      if (!cut.counters.empty()) {
        row.counters = cut.counters.back();
        add_micro_counters(measures, prefix, cut);
      }
    }
    measures[prefix + "gradient_ratio"] = {gradient, where};
    measures[prefix + "parameter_ratio"] = {parameter, ""};
    measures[prefix + "oracle_ratio"] = {worst_gradient(whole, oracle, relative), ""};
    measures[prefix + "peak_growth"] = {peak, ""};
    double travel = 0;
    for (const auto& [name, tensor] : whole.gradients.back()) travel += tensor.abs().sum().item<double>();
    measures[prefix + "gradient_sum"] = {travel, ""};
    row.timelines.push_back({{"name", "window_seconds"}, {"unit", "s"}, {"values", row.samples_s}});
    findings.variants.push_back(to_json(row));
  }
  return findings;
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "a window cut into micro-batches: one gradient, one update, the memory of one micro-batch";
  kind.keys = {counts_key("micro_batch_rows", 1, 1e9, 1, "rows of a micro-batch, each fewer than the window's"),
               count_key("windows", 1, 1000, "windows with an update after each").or_else(2),
               real_key("relative", 1e-12, kLoosestRelative, "relative L2 tolerance of a parameter's gradient")};
  for (const auto half : {Half::kBaseline, Half::kOptimized}) {
    const std::string variant = to_string(half);
    const bool required = half == Half::kOptimized;
    kind.measures.push_back({variant + ".gradient_ratio", half, "worst error / allowed of a cut window's gradients",
                             required, Values::kErrorRatio});
    kind.measures.push_back({variant + ".parameter_ratio", half,
                             "worst error / allowed of the parameters after all windows", required,
                             Values::kErrorRatio});
    kind.measures.push_back(
        {variant + ".peak_growth", half, "bytes of a window's peak beyond its first micro-batch's", required});
    kind.measures.push_back(
        {variant + ".oracle_ratio", half, "the whole window against the fp64 oracle", required, Values::kErrorRatio});
    kind.measures.push_back({variant + ".gradient_sum", half, "sum of all gradients' magnitudes: zeros prove nothing"});
    kind.measures.push_back({variant + ".per_micro.*", half, "the largest of a counter over full micro-batches"});
    kind.measures.push_back({variant + ".micro_growth.*", half, "largest less smallest over full micro-batches"});
  }
  kind.measures.push_back({"optimized.micro_growth.dispatches", Half::kOptimized,
                           "operators of a micro-batch, largest less smallest", true});
  kind.needs_windows = true;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::accumulation
