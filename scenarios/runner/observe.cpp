// Observations shared by the kinds of experiment.
#include "scenarios/runner/observe.h"

#include <ATen/ATen.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <cmath>

#include "harness/compare/compare.h"
#include "harness/device/device_allocator.h"
#include "harness/memory/tracked_allocator.h"
#include "harness/timing/statistics.h"
#include "src/common/error.h"
#include "src/stored_states.h"

namespace twinbench {
namespace {

// [items, bytes of an item].
at::Tensor bytes_of_items(const at::Tensor& tensor, std::int64_t axis) {
  const auto rows = tensor.detach().cpu().movedim(axis, 0).contiguous();
  return rows.reshape({rows.size(0), -1}).view(at::kByte);
}

bool same_kind(const at::Tensor& left, const at::Tensor& right) {
  return left.sizes() == right.sizes() && left.scalar_type() == right.scalar_type();
}

StepParity compare_steps(const StepResults& results, const Tolerance& tolerance, Dtype dtype) {
  StepParity parity;
  for (const auto& [name, tensor] : results.baseline) {
    OutputSpec spec;
    spec.name = name;
    spec.tolerance = tolerance;
    if (!tensor.is_floating_point()) spec.tolerance.kind = Tolerance::Kind::kExact;
    const auto result = compare(spec, results.oracle[name], tensor, results.candidate[name], dtype);
    if (!result.accepted()) {
      parity.reason += (parity.reason.empty() ? "" : "; ") + name + ": " + result.reason;
      parity.worst_ratio = std::max(parity.worst_ratio, 2.0);  // rejected by a rule that may have no ratio
    }
    parity.worst_ratio = std::max(parity.worst_ratio, result.worst_ratio);
  }
  return parity;
}

}  // namespace

void wait_for(c10::Device device) {
  if (!device.is_cpu())
    c10::impl::getDeviceGuardImpl(device.type())->synchronizeDevice(device.has_index() ? device.index() : 0);
}

CounterSnapshot counted(TrainingRun& run, std::int64_t steps, c10::Device device) {
  wait_for(device);
  CounterScope scope;
  for (std::int64_t i = 0; i < steps; ++i) run.step();
  wait_for(device);
  return scope.snapshot();
}

double timed_step(TrainingRun& run, c10::Device device) {
  wait_for(device);
  const auto begin = std::chrono::steady_clock::now();
  run.step();
  wait_for(device);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

at::Tensor changed_items(const at::Tensor& left, const at::Tensor& right, std::int64_t axis) {
  if (!same_kind(left, right)) return at::ones({left.size(axis)}, at::kBool);
  if (left.numel() == 0) return at::zeros({left.size(axis)}, at::kBool);
  return bytes_of_items(left, axis).ne(bytes_of_items(right, axis)).any(1);
}

std::int64_t mismatched_bits(const NamedTensors& left, const NamedTensors& right) {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : left) {
    const auto& other = right[name];
    if (!same_kind(tensor, other)) {
      count += std::max<std::int64_t>(1, tensor.numel());
    } else if (tensor.numel() > 0) {
      count += changed_items(tensor.reshape({-1}), other.reshape({-1}), 0).sum().item<std::int64_t>();
    }
  }
  return count;
}

double non_finite(const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) return 0;
  return static_cast<double>(tensor.numel()) - at::isfinite(tensor).sum().item<double>();
}

double non_finite(const NamedTensors& tensors) {
  double count = 0;
  for (const auto& [name, tensor] : tensors) count += non_finite(tensor);
  return count;
}

StepParity judge_step(const Trial& trial, const ScenarioConfig& config, const Workload& workload,
                      const StepResults& results, std::int64_t items) {
  if (auto judged = workload.judge(trial.setting(Variant::kOptimized, items), results.candidate)) return *judged;
  return compare_steps(results, trial.source.step_tolerance, keeps_bf16(config.options) ? Dtype::kBf16 : config.dtype);
}

void take_worse(StepParity& worst, const StepParity& one, const std::string& where) {
  const auto at = [&](const std::string& said) { return said.empty() ? "" : where + ": " + said; };
  if (one.worst_ratio > worst.worst_ratio) worst.worst_ratio = one.worst_ratio, worst.reason = at(one.reason);
  if (worst.undecided.empty()) worst.undecided = at(one.undecided);
}

Measure measure_of(const StepParity& parity) {
  if (parity.worst_ratio <= 1 && !parity.undecided.empty()) return {std::nullopt, parity.undecided};
  return {parity.worst_ratio, parity.reason};
}

WindowRun& windows_of(TrainingRun& run) {
  if (auto* window = dynamic_cast<WindowRun*>(&run)) return *window;
  throw Error(ErrorKind::kInternal, "training run", "no WindowRun", "its source says gives_windows");
}

double norm_ratio(const NamedTensors& a, const NamedTensors& b, double relative) {
  constexpr double kInfinite = 1e30, kLeastShare = 1e-3;
  const auto norm = [](const at::Tensor& tensor) { return at::linalg_vector_norm(tensor).item<double>(); };
  const auto exact = [](const at::Tensor& tensor) { return tensor.detach().to(at::kCPU, at::kDouble); };
  double squares = 0;
  for (const auto& [name, tensor] : b) squares += std::pow(norm(exact(tensor)), 2);
  double worst = a.size() == b.size() ? 0 : kInfinite;
  for (const auto& [name, tensor] : b) {
    const auto reference = exact(tensor), other = exact(a[name]);
    if (reference.sizes() != other.sizes()) return kInfinite;
    const double error = norm(other - reference);
    const double allowed = relative * std::max(norm(reference), kLeastShare * std::sqrt(squares));
    const double ratio = error == 0 ? 0 : error / allowed;
    worst = std::isfinite(ratio) ? std::max(worst, ratio) : kInfinite;
  }
  return worst;
}

NamedTensors copies_of(const NamedTensors& tensors) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) copies.set(name, tensor.detach().cpu().clone());
  return copies;
}

double held_bytes(c10::Device device) {
  double bytes = static_cast<double>(TrackedAllocator::instance().totals().live_bytes);
  if (const auto totals = device_allocator_totals(device)) bytes += static_cast<double>(totals->allocated_bytes);
  return bytes;
}

void add_counters(Measures& measures, const std::string& prefix, const CounterSnapshot& counters,
                  const std::string& suffix, double divisor) {
  for (const auto& [name, field] : counter_fields())
    measures[prefix + name + suffix] = {static_cast<double>(counters.*field) / divisor, ""};
}

nlohmann::json to_json(const VariantRow& row) {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, field] : counter_fields()) values[name] = row.counters.*field;
  nlohmann::json seconds;
  if (!row.samples_s.empty()) seconds = median(row.samples_s) * row.extrapolated_by;
  nlohmann::json json = {{"variant", to_string(row.variant)}, {"extrapolated", row.extrapolated_by != 1},
                         {"measured_flows", row.items},       {"seconds_per_step", seconds},
                         {"samples_s", row.samples_s},        {"counters", values}};
  if (!row.timelines.empty()) json["timelines"] = row.timelines;
  return json;
}

}  // namespace twinbench
