// What both paths of energy_flow.metrics share: the host's readings, the rings, the table; a path adds up the record.
#pragma once

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/energy_flow/metrics/arguments.h"
#include "optimized/common/tensors.h"
#include "optimized/energy_flow/common/window_metrics.h"

namespace twinbench::energy_flow::metrics {

template <class Real>
class Plan : public Runnable {
 public:
  Plan(const NamedTensors& inputs, const Setting& setting)
      : windows_(setting.size("windows")),
        micro_steps_(setting.size("micro_steps")),
        samples_(setting.size("samples")),
        categories_(static_cast<std::int64_t>(setting.option("metric_categories"))),
        device_total_(static_cast<std::int64_t>(setting.option("device_total"))),
        slow_share_(setting.on("auto_disable_on_slow") ? setting.option("performance_threshold") : 1e300),
        inputs_(inputs),
        results_(empty_results(setting)),
        values_(static_cast<std::size_t>(windows_ * kMetrics)),
        present_(new bool[static_cast<std::size_t>(windows_ * kMetrics) + 1]()),
        timings_(kTimingRing, kTimingKinds),
        memory_(kMemoryRing, kMemoryKinds) {
    const at::Tensor clock = inputs["clock"].cpu().contiguous();
    for (std::int64_t w = 0; w < windows_; ++w) clocks_.push_back(clock_of(clock, w));
    timing_ = on_host<std::int64_t>("timings");
    bytes_ = on_host<std::int64_t>("memory");
    device_ = on_host<std::int64_t>("device");
    first_timings_ = on_host<std::int64_t>("timing_ring");
    first_memory_ = on_host<std::int64_t>("memory_ring");
    first_kept_ = on_host<std::int64_t>("kept");
    disabled_at_first_ = on_host<std::int64_t>("disabled").front();
    step_ = {.losses = given<Real>(inputs_, "losses"),
             .rows = given<std::int64_t>(inputs_, "rows"),
             .steps = given<std::int32_t>(inputs_, "sample_steps"),
             .reason = given<std::int32_t>(inputs_, "reason"),
             .flow_steps = given<std::int64_t>(inputs_, "flow_steps"),
             .counts = given<std::int64_t>(inputs_, "counts"),
             .samples = samples_,
             .norm = given<double>(inputs_, "gradient_norm"),
             .rate = given<double>(inputs_, "learning_rate")};
    Plan::reset();
  }

  void reset() override {
    timings_.clear(), memory_.clear();
    for (std::int64_t i = 0; i < first_kept_[0]; ++i)
      timings_.add(&first_timings_[static_cast<std::size_t>(kTimingKinds * i)]);
    for (std::int64_t i = 0; i < first_kept_[1]; ++i)
      memory_.add(&first_memory_[static_cast<std::size_t>(kMemoryKinds * i)]);
    disabled_ = disabled_at_first_ != 0;
  }

  void run() override {
    evaluated_ = 0;
    for (std::int64_t w = 0; w < windows_; ++w) {
      if (disabled_) {
        row(w, 0);
        continue;
      }
      for (std::int64_t a = 0; a < micro_steps_; ++a) {
        take(w, step_at(w, a), a == 0);
        timings_.add(&timing_[static_cast<std::size_t>(kTimingKinds * (w * micro_steps_ + a))]);
        memory_.add(&bytes_[static_cast<std::size_t>(kMemoryKinds * (w * micro_steps_ + a))]);
      }
      window_ended(w);
      disabled_ = clocks_[static_cast<std::size_t>(w)].is_slow(slow_share_);
    }
  }

  NamedTensors outputs() override {
    std::vector<std::int64_t> timings(static_cast<std::size_t>(kTimingRing * kTimingKinds)),
        memory(static_cast<std::size_t>(kMemoryRing * kMemoryKinds)), kept{timings_.kept(), memory_.kept()},
        disabled{disabled_ ? 1 : 0}, evaluated{evaluated_};
    timings_.copy_to(timings.data());
    memory_.copy_to(memory.data());
    const auto put = [&](const char* name, auto* values) {
      const at::Tensor& to = results_[name];
      to.copy_(at::from_blob(values, to.sizes(), at::TensorOptions().dtype(to.dtype())));
    };
    put("metrics", values_.data());
    put("present", present_.get());
    put("timing_ring", timings.data());
    put("memory_ring", memory.data());
    put("kept", kept.data());
    put("disabled", disabled.data());
    put("evaluated", evaluated.data());
    return results_;
  }

 protected:
  virtual void take(std::int64_t window, const MicroStep<Real>& step, bool is_first) = 0;
  virtual void window_ended(std::int64_t window) = 0;  // its record is complete, or will be

  void evaluate_window(std::int64_t w, const MetricRecord& record) {
    WindowReadings readings{
        .clock = clocks_[static_cast<std::size_t>(w)], .micro_steps = micro_steps_, .device_total = device_total_};
    for (std::int64_t a = 0; a < micro_steps_; ++a) {
      const std::int64_t* const times = &timing_[static_cast<std::size_t>(kTimingKinds * (w * micro_steps_ + a))];
      const std::int64_t* const bytes = &bytes_[static_cast<std::size_t>(kMemoryKinds * (w * micro_steps_ + a))];
      readings.text_bridge_ms += 1e-6 * static_cast<double>(times[0]);
      readings.energy_ms += 1e-6 * static_cast<double>(times[1]);
      readings.used = bytes[0];
      readings.reserved = bytes[1];
      readings.peak = std::max(readings.peak, bytes[2]);
    }
    readings.utilization = device_[static_cast<std::size_t>(2 * w)];
    readings.busy_ns = device_[static_cast<std::size_t>(2 * w + 1)];
    evaluated_ += evaluate(record, readings, row(w, categories_));
  }

  std::int64_t windows_, micro_steps_, samples_;

 private:
  MetricRow row(std::int64_t window, std::int64_t categories) {
    return {values_.data() + window * kMetrics, present_.get() + window * kMetrics, categories};
  }

  MicroStep<Real> step_at(std::int64_t w, std::int64_t a) const {
    const std::int64_t at = w * micro_steps_ + a;
    MicroStep<Real> step = step_;
    step.losses += kLossKinds * at;
    step.rows += at;
    step.steps += samples_ * at;
    step.reason += samples_ * at;
    step.flow_steps += samples_ * at;
    step.counts += kCountKinds * at;
    const bool is_last = a == micro_steps_ - 1;
    step.norm = is_last ? step.norm + w : nullptr;
    step.rate = is_last ? step.rate + w : nullptr;
    return step;
  }

  // What the host reads by itself in a training run.
  template <class T>
  std::vector<T> on_host(const std::string& name) const {
    const at::Tensor here = inputs_[name].cpu().contiguous();
    const T* const first = here.const_data_ptr<T>();
    return {first, first + here.numel()};
  }

  std::int64_t categories_, device_total_;
  double slow_share_;
  NamedTensors inputs_, results_;
  MicroStep<Real> step_;
  std::vector<WindowClock> clocks_;
  std::vector<std::int64_t> timing_, first_timings_;  // nanoseconds
  std::vector<std::int64_t> bytes_, device_, first_memory_, first_kept_;
  std::int64_t disabled_at_first_ = 0, evaluated_ = 0;
  std::vector<double> values_;
  std::unique_ptr<bool[]> present_;
  Ring<std::int64_t> timings_;
  Ring<std::int64_t> memory_;
  bool disabled_ = false;
};

}  // namespace twinbench::energy_flow::metrics
