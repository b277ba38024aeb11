// The guard of neighbouring values at once, and how many of them it replaces for being NaN.
#pragma once

#include "kernels/common/math.h"
#include "kernels/common/vectors.h"

namespace twinbench::kernels {

template <int kWidth>
TWINBENCH_DEVICE Floats<kWidth> guarded(const Floats<kWidth>& raw, float limit) {
  return map(raw, [limit](float value) { return guard(value, limit); });
}

template <int kWidth>
TWINBENCH_DEVICE std::int32_t nan_of(const Floats<kWidth>& raw) {
  std::int32_t count = 0;
  TWINBENCH_UNROLL
  for (int k = 0; k < kWidth; ++k) count += raw.of[k] != raw.of[k];
  return count;
}

}  // namespace twinbench::kernels
