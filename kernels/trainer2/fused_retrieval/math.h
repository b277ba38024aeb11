// Arithmetic of trainer2.fused_retrieval (C10, C11), shared by host and device: costs and unnormalised weights.
#pragma once

#include <cmath>

#include "kernels/common/half_bits.h"
#include "kernels/common/math.h"

namespace twinbench::trainer2::fused_retrieval {

constexpr float kEpsilon = 1e-8f;

// How the states of candidates are stored, and so rounded.
enum class Stored { kFloat, kHalf, kBfloat };

template <Stored kStored>
TWINBENCH_HOST_DEVICE float stored(float state) {
  if constexpr (kStored == Stored::kHalf) return kernels::round_to_half(state);
  if constexpr (kStored == Stored::kBfloat) return kernels::round_to_bf16(state);
  return state;
}

// The sum of metric * displacement^2, one axis more.
TWINBENCH_HOST_DEVICE float with_axis(float quadratic, float metric, float candidate, float query) {
  const float displacement = candidate - query;
  return quadratic + displacement * displacement * metric;
}
// Comparing instead of a maximum keeps a NaN.
TWINBENCH_HOST_DEVICE float cost_of(float curvature, float quadratic) {
  const float kept = quadratic < 0.0f ? 0.0f : quadratic;
  return curvature * std::sqrt(kept + kEpsilon);
}

// e^(-beta (cost - least)); 0 for an infinite cost, whatever the least one is. Of a partial result's least cost it is
// the factor of that result.
TWINBENCH_HOST_DEVICE float weight_of(float beta, float cost, float least) {
  const float weight = kernels::exp(-beta * (cost - least));
  return cost == INFINITY ? 0.0f : weight;
}

}  // namespace twinbench::trainer2::fused_retrieval
