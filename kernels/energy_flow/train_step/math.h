// Arithmetic of the training step (C24) that is its own: embeddings made fit, gradients of a micro-step taken or
// selected away, the loss scale. Host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow::train_step {

constexpr float kInfinityBecomes = 10.0f;

TWINBENCH_HOST_DEVICE bool is_number(float value) { return value - value == 0.0f; }

TWINBENCH_HOST_DEVICE float sanitised(float value) {
  if (is_number(value)) return value;
  return value != value ? 0.0f : value > 0 ? kInfinityBecomes : -kInfinityBecomes;
}

// Selected, not multiplied: what is no number must not come back as zero times it.
TWINBENCH_HOST_DEVICE float accumulated(float sum, float gradient, bool finite) {
  return finite ? sum + gradient : sum;
}

// Of the scales of displacements by the windows that were applied: the first one for kScaleSteps windows, then the
// next one every kScaleEvery (C08).
constexpr std::int64_t kScaleSteps = 100, kScaleEvery = 10;
TWINBENCH_HOST_DEVICE std::int64_t place_of_scale(std::int64_t applied, std::int64_t last) {
  const std::int64_t place = applied < kScaleSteps ? 0 : 1 + (applied - kScaleSteps) / kScaleEvery;
  return place < last ? place : last;
}

// What moves the loss scale 2^exponent: a window with a gradient that is no number halves it, many good ones double it.
struct LossScale {
  std::int64_t exponent, good_steps;
};
constexpr std::int64_t kMostScaleExponent = 24;
TWINBENCH_HOST_DEVICE void move_scale(bool applied, bool not_finite, std::int64_t good_windows, LossScale& scale) {
  if (not_finite) {
    scale.exponent = scale.exponent > 0 ? scale.exponent - 1 : 0;
    scale.good_steps = 0;
  } else if (applied && ++scale.good_steps >= good_windows) {
    scale.exponent = scale.exponent < kMostScaleExponent ? scale.exponent + 1 : kMostScaleExponent;
    scale.good_steps = 0;
  }
}

}  // namespace twinbench::energy_flow::train_step
