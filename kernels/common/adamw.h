// AdamW over an arena of parameters, shared by host and device: what an update needs of its step, one element's update,
// how the arena is cut into pieces.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/float_bits.h"

namespace twinbench::kernels {

constexpr double kAdamwFirst = 0.9, kAdamwSecond = 0.999;  // how much of a moment stays
constexpr float kAdamwEpsilon = 1e-8f;                     // beside the root
constexpr double kClipFloor = 1e-6;                        // beside the norm

// Of the arena, neighbouring elements that one block (and one thread of the CPU) takes: at most so many, ending at a
// multiple of 4 of the arena.
constexpr std::int64_t kPieceElements = 4096;
constexpr std::int64_t kMostNormBlocks = 1024;

// What a step's update needs. `applied` 0: the step is suppressed.
struct alignas(16) AdamwStep {
  std::int32_t applied;
  std::uint32_t number;  // of this update, from 1
  float coefficient;     // of the gradients
  float decay;           // of the parameters
  float rate;            // lr / (1 - first^number)
  float root;            // 1 / sqrt(1 - second^number)
  float noise;           // of a normal number that is added, where a rule adds one
  float unused;
};

// base^exponent by squaring: the same bits wherever the exponent came from.
TWINBENCH_HOST_DEVICE double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

// Of the `number`-th update; without noise.
TWINBENCH_HOST_DEVICE AdamwStep adamw_step(std::int64_t number, double coefficient, double rate, double weight_decay) {
  return {.applied = 1,
          .number = static_cast<std::uint32_t>(number),
          .coefficient = static_cast<float>(coefficient),
          .decay = static_cast<float>(1 - rate * weight_decay),
          .rate = static_cast<float>(rate / (1 - power(kAdamwFirst, number))),
          .root = static_cast<float>(1 / std::sqrt(1 - power(kAdamwSecond, number))),
          .noise = 0,
          .unused = 0};
}

TWINBENCH_HOST_DEVICE float moved_first(float moment, float gradient) {
  return multiply_add(static_cast<float>(1 - kAdamwFirst), gradient, static_cast<float>(kAdamwFirst) * moment);
}
TWINBENCH_HOST_DEVICE float moved_second(float moment, float square) {
  return multiply_add(static_cast<float>(1 - kAdamwSecond), square, static_cast<float>(kAdamwSecond) * moment);
}
TWINBENCH_HOST_DEVICE float denominator(float second, const AdamwStep& step) {
  return multiply_add(std::sqrt(second), step.root, kAdamwEpsilon);
}
TWINBENCH_HOST_DEVICE float moved_parameter(float parameter, float first, float denominator, const AdamwStep& step) {
  return parameter * step.decay - step.rate * (first / denominator);
}

}  // namespace twinbench::kernels
