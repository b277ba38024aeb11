// Arithmetic of sem.complex_adamw (C17), shared by host and device: the decision of a step, one element's update.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/float_bits.h"

namespace twinbench::sem::complex_adamw {

constexpr double kFirst = 0.9, kSecond = 0.999;         // how much of a moment stays
constexpr double kClipFloor = 1e-6;                     // beside the norm
constexpr float kEpsilon = 1e-8f, kNoiseFloor = 1e-3f;  // beside the root, and under it where noise is scaled
constexpr std::int64_t kEndOfRun = 3;                   // suppressed steps in a row

// The rule's own numbers, as they were given.
struct Rule {
  double clip = 1, weight_decay = 0, temperature = 0;
};

struct Counts {
  std::int64_t applied, suppressed, in_a_row;
};

// What a step's update needs. `applied` 0: the step is suppressed.
struct alignas(16) Step {
  std::int32_t applied;
  std::uint32_t number;  // of this update: the noise's sub-stream
  float coefficient;     // of the gradients
  float decay;           // of the parameters
  float rate;            // lr / (1 - first^n)
  float root;            // 1 / sqrt(1 - second^n)
  float noise;           // sqrt(2 temperature lr)
  float unused;
};

// base^exponent by squaring: the same bits wherever the count came from.
TWINBENCH_HOST_DEVICE double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

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
  const double bound = rule.clip / (norm + kClipFloor), rate = learning_rate;
  coefficient = bound < 1 ? bound : 1;
  return {.applied = 1,
          .number = static_cast<std::uint32_t>(counts.applied),
          .coefficient = static_cast<float>(coefficient),
          .decay = static_cast<float>(1 - rate * rule.weight_decay),
          .rate = static_cast<float>(rate / (1 - power(kFirst, counts.applied))),
          .root = static_cast<float>(1 / std::sqrt(1 - power(kSecond, counts.applied))),
          .noise = static_cast<float>(std::sqrt(2 * rule.temperature * rate)),
          .unused = 0};
}

TWINBENCH_HOST_DEVICE float moved_first(float moment, float gradient) {
  return kernels::multiply_add(static_cast<float>(1 - kFirst), gradient, static_cast<float>(kFirst) * moment);
}
TWINBENCH_HOST_DEVICE float moved_second(float moment, float square) {
  return kernels::multiply_add(static_cast<float>(1 - kSecond), square, static_cast<float>(kSecond) * moment);
}
TWINBENCH_HOST_DEVICE float denominator(float second, const Step& step) {
  return kernels::multiply_add(std::sqrt(second), step.root, kEpsilon);
}
TWINBENCH_HOST_DEVICE float moved_parameter(float parameter, float first, float denominator, const Step& step) {
  return parameter * step.decay - step.rate * (first / denominator);
}
// What a normal adds to a parameter.
TWINBENCH_HOST_DEVICE float noise_of(float normal, float denominator, const Step& step) {
  return step.noise * normal / std::sqrt(denominator < kNoiseFloor ? kNoiseFloor : denominator);
}

}  // namespace twinbench::sem::complex_adamw
