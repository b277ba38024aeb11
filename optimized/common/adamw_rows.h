// AdamW over an arena of parameters on the CPU: the loops over a piece's elements.
#pragma once

#include <cstdint>

#include "kernels/common/adamw.h"
#include "src/common/cpu_clones.h"

namespace twinbench {

// The sum of squares in fp64, in an order that no vector length changes.
TWINBENCH_CPU_CLONES static double sum_of_squares(const float* __restrict values, std::int64_t count) {
  constexpr int kLanes = 32;  // sums that do not wait for each other
  double sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  for (int lane = 0; i < count; ++i, ++lane) sums[lane] += static_cast<double>(values[i]) * values[i];
  double sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum;
}

TWINBENCH_CPU_CLONES static void update_row(float* __restrict parameter, float* __restrict gradient,
                                            float* __restrict first, float* __restrict second, std::int64_t count,
                                            const kernels::AdamwStep& by, bool clears) {
  const kernels::AdamwStep step = by;
  for (std::int64_t i = 0; i < count; ++i) {
    const float clipped = gradient[i] * step.coefficient, moved = kernels::moved_first(first[i], clipped),
                squared = kernels::moved_second(second[i], clipped * clipped);
    parameter[i] = kernels::moved_parameter(parameter[i], moved, kernels::denominator(squared, step), step);
    first[i] = moved;
    second[i] = squared;
    gradient[i] = clears ? 0.0f : clipped;
  }
}

}  // namespace twinbench
