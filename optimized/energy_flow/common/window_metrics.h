// The metrics of an optimizer window (C29) from its record and the host's readings. What cannot be known is absent.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/energy_flow/common/metric_record.h"
#include "src/energy_flow/common/metric_table.h"

namespace twinbench::energy_flow {

static_assert(kSlotReason - kSlotMostSteps == 1 && kSlotBin - kSlotReason == kStopReasons &&
              kSlotCount - kSlotBin == kStepBins && kSlotNorm - kSlotCount == kCountKinds);

// What the host knows of a window by itself. Times in milliseconds, of all its micro-steps together.
struct WindowReadings {
  WindowClock clock;
  double text_bridge_ms = 0, energy_ms = 0;
  std::int64_t micro_steps = 0;
  std::int64_t used = 0, reserved = 0, peak = 0, device_total = 0;  // bytes
  std::int64_t utilization = kNotThere, busy_ns = kNotThere;
};

// A window's row of the table, of the categories that are on.
class MetricRow {
 public:
  MetricRow(double* values, bool* present, std::int64_t categories)
      : values_(values), present_(present), categories_(categories) {
    for (std::int64_t metric = 0; metric < kMetrics; ++metric) {
      values_[metric] = std::numeric_limits<double>::quiet_NaN();
      present_[metric] = false;
    }
  }

  bool is_on(std::int64_t category) const { return (categories_ & category) != 0; }
  void set(std::int64_t metric, double value) {
    values_[metric] = value;
    present_[metric] = true;
  }
  // Absent where there is nothing to divide by.
  void set_ratio(std::int64_t metric, double of, double by) {
    if (by > 0) set(metric, of / by);
  }

 private:
  double* values_;
  bool* present_;
  std::int64_t categories_;
};

// How many metrics were asked for.
inline std::int64_t evaluate(const MetricRecord& record, const WindowReadings& readings, MetricRow row) {
  const auto whole = [&](int slot) { return static_cast<double>(record.slot[slot].whole); };
  const double seconds = readings.clock.seconds();
  if (row.is_on(kBasicCategory)) {
    row.set_ratio(kThroughput, whole(kSlotRows), seconds);
    for (int kind = 0; kind < kLossKinds; ++kind)
      row.set_ratio(kFirstLoss + kind, record.slot[kSlotLoss + kind].real, whole(kSlotFiniteRows));
    const double norm = record.slot[kSlotNorm].real;
    row.set(kGradientNorm, norm);
    row.set(kLearningRate, record.slot[kSlotRate].real);
    row.set(kSkippedMicro, whole(kSlotSkipped));
    row.set(kSkippedSteps, std::isfinite(norm) ? 0 : 1);
  }
  if (row.is_on(kFlowCategory)) {
    row.set_ratio(kFlowRate, whole(kSlotFlowSteps), readings.energy_ms * 1e-3);
    row.set_ratio(kMeanSteps, whole(kSlotSteps), whole(kSlotSamples));
    row.set(kMostSteps, whole(kSlotMostSteps));
    for (int i = 0; i < kStopReasons + kStepBins; ++i) row.set(kFirstReason + i, whole(kSlotReason + i));
    for (int i = 0; i + 1 < kCountKinds; ++i) row.set(kGuardHits + i, whole(kSlotCount + i));
    row.set_ratio(kTokenRate, whole(kSlotCount + kCountKinds - 1), seconds);
  }
  if (row.is_on(kTimingCategory)) {
    row.set_ratio(kTextBridgeTime, readings.text_bridge_ms, static_cast<double>(readings.micro_steps));
    row.set_ratio(kEnergyTime, readings.energy_ms, static_cast<double>(readings.micro_steps));
  }
  if (row.is_on(kMemoryCategory)) {
    row.set(kMemoryUsed, static_cast<double>(readings.used));
    row.set(kMemoryReserved, static_cast<double>(readings.reserved));
    row.set(kMemoryPeak, static_cast<double>(readings.peak));
    row.set_ratio(kMemoryUtilization, 100 * static_cast<double>(readings.reserved),
                  static_cast<double>(readings.device_total));
  }
  if (row.is_on(kDeviceCategory)) {
    if (readings.utilization != kNotThere) row.set(kDeviceUtilization, static_cast<double>(readings.utilization));
    if (readings.busy_ns != kNotThere)
      row.set_ratio(kBusyFraction, static_cast<double>(readings.busy_ns) * 1e-9, seconds);
  }
  std::int64_t asked = 0;
  for (std::int64_t metric = 0; metric < kMetrics; ++metric) asked += row.is_on(category_of(metric));
  return asked;
}

// The last `size` rows of `width` values that were added.
template <class T>
class Ring {
 public:
  Ring(std::int64_t size, std::int64_t width)
      : size_(size), width_(width), values_(static_cast<std::size_t>(size * width)) {}

  void clear() { added_ = 0; }
  void add(const T* row) {
    std::copy_n(row, width_, values_.data() + added_ % size_ * width_);
    ++added_;
  }
  std::int64_t kept() const { return added_ < size_ ? added_ : size_; }
  // The oldest row first.
  void copy_to(T* to) const {
    for (std::int64_t i = 0; i < kept(); ++i)
      std::copy_n(values_.data() + (added_ - kept() + i) % size_ * width_, width_, to + i * width_);
  }

 private:
  std::int64_t size_, width_, added_ = 0;
  std::vector<T> values_;
};

}  // namespace twinbench::energy_flow
