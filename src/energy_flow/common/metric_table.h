// The metrics of an optimizer window (C29): what they are called, which category turns them on, their limits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "src/common/error.h"

namespace twinbench::energy_flow {

// Bits of the option metric_categories.
enum MetricCategory : std::int64_t {
  kBasicCategory = 1,
  kFlowCategory = 2,
  kTimingCategory = 4,
  kMemoryCategory = 8,
  kDeviceCategory = 16
};
inline constexpr std::int64_t kAllCategories = 31;

inline constexpr std::int64_t kLossKinds = 5;    // energy, encoder, decoder, text, total
inline constexpr std::int64_t kStopReasons = 4;  // from 1 on: exhausted, step limit, threshold, patience
inline constexpr std::int64_t kStepBins = 8;     // steps of a sample: 1, 2, 3-4, 5-8, ..., 33-64, more
inline constexpr std::int64_t kCountKinds = 5;  // guard hits, dropped initial and spawned flows, sanitised rows, tokens

// Places in the table of a window.
enum Metric : std::int64_t {
  kThroughput,
  kFirstLoss,
  kGradientNorm = kFirstLoss + kLossKinds,
  kLearningRate,
  kSkippedMicro,
  kSkippedSteps,
  kFlowRate,
  kMeanSteps,
  kMostSteps,
  kFirstReason,
  kFirstBin = kFirstReason + kStopReasons,
  kGuardHits = kFirstBin + kStepBins,
  kDroppedInitial,
  kDroppedSpawn,
  kSanitised,
  kTokenRate,
  kTextBridgeTime,
  kEnergyTime,
  kMemoryUsed,
  kMemoryReserved,
  kMemoryPeak,
  kMemoryUtilization,
  kDeviceUtilization,
  kBusyFraction,
  kMetrics
};

inline constexpr std::int64_t category_of(std::int64_t metric) {
  return metric < kFlowRate            ? kBasicCategory
         : metric < kTextBridgeTime    ? kFlowCategory
         : metric < kMemoryUsed        ? kTimingCategory
         : metric < kDeviceUtilization ? kMemoryCategory
                                       : kDeviceCategory;
}

inline constexpr std::int64_t kTimingRing = 1000, kMemoryRing = 500;  // how many are kept
inline constexpr std::int64_t kTimingKinds = 2, kMemoryKinds = 3;     // text bridge, energy; used, reserved, peak
inline constexpr std::int64_t kNotThere = -1;                         // of a device that says nothing

// Of a window, by a clock that never goes back: nanoseconds. `spent`: of it, on the metrics themselves.
struct WindowClock {
  std::int64_t begin = 0, end = 0, spent = 0;

  double seconds() const { return static_cast<double>(end - begin) * 1e-9; }
  // Whether the metrics take more than that share. Of no time there is no share.
  bool is_slow(double share) const {
    return end > begin && static_cast<double>(spent) > share * static_cast<double>(end - begin);
  }
};

// clock [windows, 3], read at set-up. Throws kOutOfRange where a window ends before it begins.
inline WindowClock clock_of(const at::Tensor& clock, std::int64_t window) {
  const auto* const row = clock.const_data_ptr<std::int64_t>() + 3 * window;
  if (row[1] < row[0])
    throw Error(ErrorKind::kOutOfRange, "clock",
                "window " + std::to_string(window) + " of " + std::to_string(row[1] - row[0]) + " ns",
                "take a monotonic clock, such as std::chrono::steady_clock");
  return {row[0], row[1], row[2]};
}

}  // namespace twinbench::energy_flow
