// What experiments look at: counters of a step, bits that differ, values that are not finite, and rows for the record.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/counters/counter_scope.h"
#include "scenarios/runner/criterion.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/training_run.h"
#include "src/registry.h"

namespace twinbench {

// Waits until the device has done what it was asked; nothing to wait for on the CPU.
void wait_for(c10::Device device);

// Counters of `steps` steps. The caller has warmed the run up.
CounterSnapshot counted(TrainingRun& run, std::int64_t steps, c10::Device device);

// Wall seconds of one step, its end on the device included.
double timed_step(TrainingRun& run, c10::Device device);

// How many elements differ bit for bit (NaN of the same bits are equal), a tensor of another shape or dtype counting in
// full; over all tensors of `left`, each of which `right` has.
std::int64_t mismatched_bits(const NamedTensors& left, const NamedTensors& right);

// Items whose bits differ along that axis, as a bool tensor [items] on the CPU.
at::Tensor changed_items(const at::Tensor& left, const at::Tensor& right, std::int64_t axis);

double non_finite(const at::Tensor& tensor);
double non_finite(const NamedTensors& tensors);

// The candidate's first step by the workload's own judge, or else by the comparison rule of parity with the tolerance
// of the trial's source, of the class that `config` asks for: bf16's where states are stored in it (energy flow 0.4).
struct StepResults {
  NamedTensors oracle, baseline, candidate;
};
StepParity judge_step(const Trial& trial, const ScenarioConfig& config, const Workload& workload,
                      const StepResults& results, std::int64_t items = 0);
void take_worse(StepParity& worst, const StepParity& one, const std::string& where);
Measure measure_of(const StepParity& parity);  // none where nothing is rejected and something undecided

// What a WindowRun's kinds look at: the run as one (throws kInternal where its source promised wrongly), and the worst
// tensor's |a - b| / (relative * |b|) by L2 norms. A norm below a thousandth of all tensors' together counts as that:
// what a parameter that hardly matters rounds to is not judged by itself. 1e30 where a difference is not finite.
WindowRun& windows_of(TrainingRun& run);
double norm_ratio(const NamedTensors& a, const NamedTensors& b, double relative);
NamedTensors copies_of(const NamedTensors& tensors);  // on the CPU

// Bytes in tensors now, on host and device.
double held_bytes(c10::Device device);

// Adds <prefix><counter> for every counter, divided by `divisor`.
void add_counters(Measures& measures, const std::string& prefix, const CounterSnapshot& counters,
                  const std::string& suffix = "", double divisor = 1);

// A variant's row in the record.
struct VariantRow {
  Variant variant = Variant::kBaseline;
  std::int64_t items = 0;         // that were measured
  double extrapolated_by = 1;     // to the whole configuration
  std::vector<double> samples_s;  // seconds a step, as measured
  CounterSnapshot counters;
  nlohmann::json timelines = nlohmann::json::array();  // {name, unit, values}: one value a step or window
};
nlohmann::json to_json(const VariantRow& row);

}  // namespace twinbench
