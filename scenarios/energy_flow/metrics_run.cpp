// Run energy_flow.metrics: the metrics of optimizer windows, each held against the counters that define it (C29).
#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "scenarios/runner/component_source.h"
#include "src/energy_flow/common/metric_table.h"

namespace twinbench::energy_flow::metrics {
namespace {

using Row = std::array<std::optional<double>, kMetrics>;

std::optional<double> over(double part, double whole) { return whole > 0 ? std::optional(part / whole) : std::nullopt; }

// A window's inputs, in fp64 on the CPU.
struct Window {
  at::Tensor losses, rows, steps, reason, flow_steps, counts, timings, memory, clock, device;
  double norm = 0, rate = 0;

  Window(const NamedTensors& inputs, std::int64_t w) {
    const auto of = [&](const char* name) { return inputs[name][w].to(at::kDouble); };
    losses = of("losses"), rows = of("rows"), steps = of("sample_steps"), reason = of("reason");
    flow_steps = of("flow_steps"), counts = of("counts"), timings = of("timings"), memory = of("memory");
    clock = of("clock"), device = of("device");
    norm = of("gradient_norm").item<double>(), rate = of("learning_rate").item<double>();
  }
};

double added(const at::Tensor& values) { return values.sum().item<double>(); }

// Its metrics as the specification defines them: over micro-steps and samples at once, with nothing added up before.
Row defined(const Window& of, double device_total) {
  Row row;
  const double seconds = 1e-9 * (of.clock[1] - of.clock[0]).item<double>();
  const auto micro_steps = static_cast<double>(of.rows.numel());
  const at::Tensor total = of.losses.select(1, kLossKinds - 1), finite = at::isfinite(total);
  const at::Tensor weights = at::where(finite, of.rows, 0.0);
  row[kThroughput] = over(added(of.rows), seconds);
  for (std::int64_t kind = 0; kind < kLossKinds; ++kind)
    row[static_cast<std::size_t>(kFirstLoss + kind)] =
        over(added(at::where(finite, of.losses.select(1, kind), 0.0) * weights), added(weights));
  row[kGradientNorm] = of.norm, row[kLearningRate] = of.rate;
  row[kSkippedMicro] = micro_steps - added(finite.to(at::kDouble));
  row[kSkippedSteps] = std::isfinite(of.norm) ? 0 : 1;
  row[kFlowRate] = over(1e9 * added(of.flow_steps), added(of.timings.select(1, 1)));
  row[kMeanSteps] = of.steps.mean().item<double>(), row[kMostSteps] = of.steps.max().item<double>();
  for (std::int64_t i = 0; i < kStopReasons; ++i)
    row[static_cast<std::size_t>(kFirstReason + i)] = added(of.reason.eq(static_cast<double>(i + 1)).to(at::kDouble));
  // 0 and 1; 2; 3 and 4; 5 to 8; ...; more than 64.
  const at::Tensor bin = at::ceil(at::log2(of.steps.clamp_min(1))).clamp_max(kStepBins - 1);
  for (std::int64_t i = 0; i < kStepBins; ++i)
    row[static_cast<std::size_t>(kFirstBin + i)] = added(bin.eq(static_cast<double>(i)).to(at::kDouble));
  for (std::int64_t i = 0; i + 1 < kCountKinds; ++i)
    row[static_cast<std::size_t>(kGuardHits + i)] = added(of.counts.select(1, i));
  row[kTokenRate] = over(added(of.counts.select(1, kCountKinds - 1)), seconds);
  row[kTextBridgeTime] = 1e-6 * added(of.timings.select(1, 0)) / micro_steps;
  row[kEnergyTime] = 1e-6 * added(of.timings.select(1, 1)) / micro_steps;
  const at::Tensor last = of.memory[of.memory.size(0) - 1];
  row[kMemoryUsed] = last[0].item<double>(), row[kMemoryReserved] = last[1].item<double>();
  row[kMemoryPeak] = of.memory.select(1, 2).max().item<double>();
  row[kMemoryUtilization] = over(100 * last[1].item<double>(), device_total);  // of the device, not of the peak
  const double utilization = of.device[0].item<double>(), busy = of.device[1].item<double>();
  if (utilization != kNotThere) row[kDeviceUtilization] = utilization;
  if (busy != kNotThere) row[kBusyFraction] = over(1e-9 * busy, seconds);
  return row;
}

// How many metrics are not what defines them, or there where they are not, of how many; and what a driver told.
Readings off(const NamedTensors& inputs, const NamedTensors& results, const Setting& setting) {
  const at::Tensor metrics = results["metrics"].contiguous(), present = results["present"].contiguous();
  const auto categories = static_cast<std::int64_t>(setting.option("metric_categories"));
  double wrong = 0, there = 0, of_device = 0;
  for (std::int64_t w = 0; w < setting.size("windows"); ++w) {
    const Row row = defined(Window(inputs, w), setting.option("device_total"));
    for (std::int64_t metric = 0; metric < kMetrics; ++metric) {
      std::optional<double> is = row[static_cast<std::size_t>(metric)];
      if ((categories & category_of(metric)) == 0) is.reset();
      const double told = metrics.const_data_ptr<double>()[w * kMetrics + metric];
      const bool is_there = present.const_data_ptr<bool>()[w * kMetrics + metric];
      const bool equal = is && (told == *is || std::abs(told - *is) <= 1e-6 * std::abs(*is) + 1e-30);
      wrong += is.has_value() != is_there || (is_there && !equal) ? 1 : 0;
      there += is_there;
      of_device += is_there && category_of(metric) == kDeviceCategory;
    }
  }
  return {{"wrong", wrong}, {"there", there}, {"of_device", of_device}};
}

}  // namespace

RunSource make_source() {
  return component_source("energy_flow.metrics", "metrics of optimizer windows, from the counters of their micro-steps",
                          {Tolerance::Kind::kBound, {1e-6, 1e-30}, {1e-6, 1e-30}, "C29"}, Pass::kForward, off);
}

}  // namespace twinbench::energy_flow::metrics
