// Arithmetic of sem.complex_adamw (C17), shared by host and device: the decision of a step, the noise.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/adamw.h"

namespace twinbench::sem::complex_adamw {

constexpr float kNoiseFloor = 1e-3f;   // under the denominator where noise is scaled
constexpr std::int64_t kEndOfRun = 3;  // suppressed steps in a row

using Step = kernels::AdamwStep;  // its number is the noise's sub-stream

// The rule's own numbers, as they were given.
struct Rule {
  double clip = 1, weight_decay = 0, temperature = 0;
};

struct Counts {
  std::int64_t applied, suppressed, in_a_row;
};

// The status of a step by the row that it ends: 0 applied, 1 suppressed, 2 suppressed and the run has to end.
TWINBENCH_HOST_DEVICE std::int64_t status_of(std::int64_t in_a_row) {
  return in_a_row == 0 ? 0 : in_a_row < kEndOfRun ? 1 : 2;
}

// From the gradients' norm, the loss and the learning rate. Counts the step and tells the coefficient in fp64, 0 where
// the step is suppressed.
TWINBENCH_HOST_DEVICE Step decided(const Rule& rule, double norm, float loss, float learning_rate, Counts& counts,
                                   double& coefficient) {
  if (!(std::isfinite(norm) && std::isfinite(loss))) {
    ++counts.suppressed;
    ++counts.in_a_row;
    coefficient = 0;
    return {};
  }
  ++counts.applied;
  counts.in_a_row = 0;
  const double bound = rule.clip / (norm + kernels::kClipFloor), rate = learning_rate;
  coefficient = bound < 1 ? bound : 1;
  Step step = kernels::adamw_step(counts.applied, coefficient, rate, rule.weight_decay);
  step.noise = static_cast<float>(std::sqrt(2 * rule.temperature * rate));
  return step;
}

// What a normal adds to a parameter.
TWINBENCH_HOST_DEVICE float noise_of(float normal, float denominator, const Step& step) {
  return step.noise * normal / std::sqrt(denominator < kNoiseFloor ? kNoiseFloor : denominator);
}

}  // namespace twinbench::sem::complex_adamw
