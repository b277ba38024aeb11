// Layer normalisation in scalar pieces: moments that merge, normalised value, input gradient. Host and device.
#pragma once

#include <cmath>

#include "kernels/common/float_bits.h"

namespace twinbench::kernels {

// Count, mean and sum of squared deviations of a set of values; merging is exact in exact arithmetic (Chan et al.),
// and never subtracts two large squares as E[x^2] - E[x]^2 does.
template <class Real>
struct Moments {
  Real count = 0, mean = 0, squared_deviations = 0;

  // Population variance (divides by count), as layer normalisation wants it.
  TWINBENCH_HOST_DEVICE Real variance() const { return squared_deviations / count; }
};

template <class Real>
TWINBENCH_HOST_DEVICE Moments<Real> merge(const Moments<Real>& a, const Moments<Real>& b) {
  const Real count = a.count + b.count;
  const Real share = count > Real(0) ? b.count / count : Real(0);
  const Real difference = b.mean - a.mean;
  return {count, multiply_add(difference, share, a.mean),
          multiply_add(difference * difference, a.count * share, a.squared_deviations + b.squared_deviations)};
}

// 1 / sqrt(variance + epsilon), epsilon as PyTorch has it by default, with correctly rounded square root and division:
// same bits on host and device, unlike the approximate reciprocal square root.
template <class Real>
TWINBENCH_HOST_DEVICE Real inverse_deviation(Real variance, Real epsilon = Real(1e-5)) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Real) == 4) return __fdiv_rn(1.0f, __fsqrt_rn(variance + epsilon));
#endif
  return Real(1) / std::sqrt(variance + epsilon);
}

template <class Real>
TWINBENCH_HOST_DEVICE Real normalized(Real x, Real mean, Real inverse) {
  return (x - mean) * inverse;
}

// gain * normalized + shift.
template <class Real>
TWINBENCH_HOST_DEVICE Real scaled(Real normal, Real gain, Real shift) {
  return multiply_add(normal, gain, shift);
}

// Gradient of one input: inverse * (g - mean(g) - normalized * mean(g * normalized)), g = output gradient * gain,
// the means taken over the row.
template <class Real>
TWINBENCH_HOST_DEVICE Real layer_norm_input_gradient(Real g, Real mean_g, Real normalized_x, Real mean_g_normalized,
                                                     Real inverse) {
  return inverse * (g - mean_g - normalized_x * mean_g_normalized);
}

}  // namespace twinbench::kernels
