// Short forms of math.h's functions for kernels that are limited by issue slots: everything by a power of two and a
// reciprocal, which the card's special function units give in one instruction each.
//
// The same polynomials on host and device, so that a host run errs as the card does but for those two instructions (2
// and 1 units in the last place there, PTX ISA, ex2.approx and rcp.approx). Errors are asserted by math_test.cpp.
// Coefficients: weighted minimax fits of log2 of the upper tail of the normal distribution.
#pragma once

#include <cmath>

#include "kernels/common/float_bits.h"

namespace twinbench::kernels {

TWINBENCH_HOST_DEVICE float short_exp2(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return std::exp2(x);
#endif
}

TWINBENCH_HOST_DEVICE float short_reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0f / x;
#endif
}

// ---- gates: absolute errors of 2e-7; both infinities and NaN as math.h has them -------------------------------------
TWINBENCH_HOST_DEVICE float short_sigmoid(float x) { return short_reciprocal(1.0f + short_exp2(-1.44269504f * x)); }
// Near zero the error is absolute, too: small results keep fewer digits.
TWINBENCH_HOST_DEVICE float short_tanh(float x) {
  return multiply_add(-2.0f, short_reciprocal(1.0f + short_exp2(2.88539008f * x)), 1.0f);
}

// ---- GELU -----------------------------------------------------------------------------------------------------------
// How likely a normal number exceeds t >= 0, which may be infinite: 1/2 at 0, within 1e-7 everywhere.
TWINBENCH_HOST_DEVICE float normal_tail(float t) {
  float p = -2.834912831e-06f;
  p = multiply_add(p, t, 3.937769157e-05f);
  p = multiply_add(p, t, -1.861802430e-04f);
  p = multiply_add(p, t, -1.369363638e-04f);
  p = multiply_add(p, t, 7.063420118e-03f);
  p = multiply_add(p, t, -5.249617834e-02f);
  p = multiply_add(p, t, -4.592081967e-01f);
  p = multiply_add(p, t, -1.151105205e+00f);
  return short_exp2(multiply_add(p, t, -1.0f));
}
// The same within 5e-7, for what is rounded to bf16 next.
TWINBENCH_HOST_DEVICE float rough_normal_tail(float t) {
  float p = -5.204486624e-04f;
  p = multiply_add(p, t, 7.397464388e-03f);
  p = multiply_add(p, t, -5.256116650e-02f);
  p = multiply_add(p, t, -4.592547225e-01f);
  p = multiply_add(p, t, -1.151091349e+00f);
  return short_exp2(multiply_add(p, t, -1.0f));
}
// How likely one stays below x, from the tail beyond |x|.
TWINBENCH_HOST_DEVICE float normal_share(float x, float tail) { return 0.5f + with_sign_of(0.5f - tail, x); }

// As gelu: the error counts in half units of x's last place, -infinity gives NaN.
TWINBENCH_HOST_DEVICE float short_gelu(float x) { return x * normal_share(x, normal_tail(absolute(x))); }

// GELU and its derivative, which share what costs.
struct GeluAndSlope {
  float gelu, slope;
};
TWINBENCH_HOST_DEVICE GeluAndSlope short_gelu_and_slope(float x) {
  const float share = normal_share(x, normal_tail(absolute(x)));
  const float density = 0.398942280f * short_exp2(-0.721347520f * x * x);
  return {x * share, multiply_add(x, density, share)};
}

// For finite x and NaN, within 1.3e-6: two instructions less, and results are rounded to bf16 next.
TWINBENCH_HOST_DEVICE float rough_gelu(float x) {
  const float t = absolute(x), upper = x > 0.0f ? x : 0.0f;
  return multiply_add(-t, rough_normal_tail(t), upper);
}

}  // namespace twinbench::kernels
