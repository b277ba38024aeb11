// Sums of squared differences of two surfaces on the CPU (C23), and their gradient in the same pass.
#pragma once

#include <cstdint>

#include "src/common/cpu_clones.h"

namespace twinbench::energy_flow {

// Of squares in fp64, in an order that no vector length changes. `gradient`: difference times `factor`; null: none.
template <class Real>
TWINBENCH_CPU_CLONES static double squared_differences(const Real* __restrict surface, const Real* __restrict target,
                                                       Real* __restrict gradient, Real factor, std::int64_t count) {
  constexpr int kLanes = 32;  // sums that do not wait for each other
  double sums[kLanes] = {};
  std::int64_t i = 0;
  if (gradient != nullptr)
    for (; i + kLanes <= count; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) {
        const Real difference = surface[i + lane] - target[i + lane];
        sums[lane] += static_cast<double>(difference) * static_cast<double>(difference);
        gradient[i + lane] = difference * factor;
      }
  else
    for (; i + kLanes <= count; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) {
        const Real difference = surface[i + lane] - target[i + lane];
        sums[lane] += static_cast<double>(difference) * static_cast<double>(difference);
      }
  for (int lane = 0; i < count; ++i, ++lane) {
    const Real difference = surface[i] - target[i];
    sums[lane] += static_cast<double>(difference) * static_cast<double>(difference);
    if (gradient != nullptr) gradient[i] = difference * factor;
  }
  double sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum;
}

}  // namespace twinbench::energy_flow
