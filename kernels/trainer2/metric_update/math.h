// Arithmetic of trainer2.metric_update (C18), shared by host and device: one axis, one block, the state of refusals.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/common/host_device.h"

namespace twinbench::trainer2::metric_update {

constexpr float kLeast = 0.01f, kMost = 100.0f, kEpsilon = 1e-8f, kCouplingShare = 0.99f;

// A NaN passes through: both comparisons are false.
TWINBENCH_HOST_DEVICE float clamped(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

// What the metric moves by along one axis: `total` is the sum of squares plus epsilon. The share is multiplied with the
// change before the rate, so that an overflow ends at a bound and never as infinity times zero.
TWINBENCH_HOST_DEVICE float metric_change(float rho, float total, float change, float rate) {
  return rate * (change * (rho * rho / total));
}
TWINBENCH_HOST_DEVICE float moved_metric(float metric, float by) { return clamped(metric + by, kLeast, kMost); }

// The coupling of a block from its two components and its two new metric values; stays positive definite.
TWINBENCH_HOST_DEVICE float moved_coupling(float coupling, float first, float second, float total, float change,
                                           float rate, float metric_first, float metric_second) {
  const float most = kCouplingShare * std::sqrt(metric_first * metric_second);
  return clamped(coupling + rate * (change * (first * second) / total), -most, most);
}

// Refusals: all, in a row, and whether everything is frozen.
struct Rejects {
  std::int64_t total, in_a_row, frozen;
};
TWINBENCH_HOST_DEVICE Rejects after(Rejects rejects, bool accepted, std::int64_t most) {
  if (rejects.frozen != 0) return rejects;
  if (accepted) return {rejects.total, 0, 0};
  return {rejects.total + 1, rejects.in_a_row + 1, rejects.in_a_row + 1 >= most ? 1 : 0};
}

}  // namespace twinbench::trainer2::metric_update
