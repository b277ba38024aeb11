// Scalar mathematics of every optimized CPU loop and CUDA kernel: exp, tanh, sigmoid, erf, GELU, derivatives, guard.
//
// Host floats: polynomials without branches, so that g++ vectorises a plain loop over them (see cpu_clones.h); errors
// in units of the last place over all exponents are asserted by math_test.cpp. NaN gives NaN, infinities their limits.
// Device floats: CUDA's own functions. Doubles: the standard library. Coefficients: weighted minimax fits.
// Call them qualified (kernels::tanh), or from inside namespace twinbench::kernels: `using namespace` meets ::tanh.
#pragma once

#include <cmath>

#include "kernels/common/float_bits.h"

namespace twinbench::kernels {

// ---- guard --------------------------------------------------------------------------------------------------------
// 0 if a is NaN, else a clamped to [-limit, limit] (energy-flow specification C07).
TWINBENCH_HOST_DEVICE float guard(float a, float limit) {
  const float low = a < -limit ? -limit : a;  // NaN compares false, so it passes both selections ...
  const float clamped = low > limit ? limit : low;
  return clamped == clamped ? clamped : 0.0f;  // ... and is replaced here
}
TWINBENCH_HOST_DEVICE double guard(double a, double limit) {
  const double low = a < -limit ? -limit : a;
  const double clamped = low > limit ? limit : low;
  return clamped == clamped ? clamped : 0.0;
}

// Derivative of guard at a: 1 where a is finite and within the limit, else 0.
TWINBENCH_HOST_DEVICE float guard_derivative(float a, float limit) { return absolute(a) <= limit ? 1.0f : 0.0f; }
TWINBENCH_HOST_DEVICE double guard_derivative(double a, double limit) { return absolute(a) <= limit ? 1.0 : 0.0; }

// What passes back through guard at a: the gradient, or 0 where the guard acted (whatever the gradient is, NaN too).
template <class Real>
TWINBENCH_HOST_DEVICE Real guard_gradient(Real a, Real limit, Real gradient) {
  return guard_derivative(a, limit) != Real(0) ? gradient : Real(0);
}

// ---- exponential --------------------------------------------------------------------------------------------------
TWINBENCH_HOST_DEVICE double exp(double x) { return std::exp(x); }

// e^x. At most 1 ulp; subnormal results are right; above 88.73 infinity, below -104 zero.
TWINBENCH_HOST_DEVICE float exp(float x) {
#if defined(__CUDA_ARCH__)
  return ::expf(x);
#else
  const float low = x < -104.0f ? -104.0f : x;
  const float bounded = low > 89.0f ? 89.0f : low;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits: n = round(x / ln 2).
  const float shifted = bounded * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  // ln 2 in two parts; the first has 9 significant bits, so n * it is exact.
  float r = multiply_add(n, -0.693359375f, bounded);
  r = multiply_add(n, 2.12194440e-4f, r);
  float q = 1.381454058e-03f;
  q = multiply_add(q, r, 8.368745446e-03f);
  q = multiply_add(q, r, 4.166838899e-02f);
  q = multiply_add(q, r, 1.666652113e-01f);
  q = multiply_add(q, r, 4.999999404e-01f);
  const float e = 1.0f + multiply_add(r * r, q, r);
  // 2^n as two factors: neither overflows nor turns subnormal for n in [-150, 129]. Arithmetic shift halves n.
  const std::int32_t power = static_cast<std::int32_t>(bits_of(shifted) - 0x4b400000u);
  const std::uint32_t half = static_cast<std::uint32_t>(power >> 1);
  const std::uint32_t other = static_cast<std::uint32_t>(power) - half;
  return e * float_of_bits((half + 127u) << 23) * float_of_bits((other + 127u) << 23);
#endif
}

// ---- hyperbolic tangent -------------------------------------------------------------------------------------------
TWINBENCH_HOST_DEVICE double tanh(double x) { return std::tanh(x); }

// At most 1.5 ulp.
TWINBENCH_HOST_DEVICE float tanh(float x) {
#if defined(__CUDA_ARCH__)
  return ::tanhf(x);
#else
  const float t = absolute(x);
  const float large = 1.0f - 2.0f / (exp(2.0f * t) + 1.0f);
  const float s = x * x;
  float p = -5.704986863e-03f;
  p = multiply_add(p, s, 2.063908800e-02f);
  p = multiply_add(p, s, -5.373971537e-02f);
  p = multiply_add(p, s, 1.333144158e-01f);
  p = multiply_add(p, s, -3.333328068e-01f);
  const float small = multiply_add(p * s, x, x);
  return with_sign_of(t < 0.625f ? small : large, x);  // also keeps -0
#endif
}

// ---- logistic -----------------------------------------------------------------------------------------------------
// 1 / (1 + e^-x) without overflow: e^-|x| is at most 1. At most 3 ulp.
template <class Real>
TWINBENCH_HOST_DEVICE Real sigmoid(Real x) {
  const Real e = exp(-absolute(x));
  const Real larger = Real(1) / (Real(1) + e);
  return x < Real(0) ? e * larger : larger;
}

// ---- error function and the normal distribution -------------------------------------------------------------------
TWINBENCH_HOST_DEVICE double erf(double x) { return std::erf(x); }

// At most 6 ulp near 1 (absolute 3.6e-7), 2 near 0: x * P(x^2) / Q(x^2), all coefficients positive (nothing cancels),
// exactly +-1 from 3.92 on.
TWINBENCH_HOST_DEVICE float erf(float x) {
#if defined(__CUDA_ARCH__)
  return ::erff(x);
#else
  const float low = x < -3.92f ? -3.92f : x;
  const float bounded = low > 3.92f ? 3.92f : low;
  const float s = bounded * bounded;
  float p = 2.050087687e-06f;
  p = multiply_add(p, s, 2.848820877e-04f);
  p = multiply_add(p, s, 3.765598638e-03f);
  p = multiply_add(p, s, 5.274868011e-02f);
  p = multiply_add(p, s, 1.904060841e-01f);
  p = multiply_add(p, s, 1.128379226e+00f);
  float q = 3.809168993e-05f;
  q = multiply_add(q, s, 1.162530622e-03f);
  q = multiply_add(q, s, 1.496918406e-02f);
  q = multiply_add(q, s, 1.141089424e-01f);
  q = multiply_add(q, s, 5.020758510e-01f);
  q = multiply_add(q, s, 1.0f);
  const float ratio = bounded * p / q;
  return absolute(x) >= 3.92f ? with_sign_of(1.0f, x) : ratio;
#endif
}

TWINBENCH_HOST_DEVICE double erf_derivative(double x) { return 1.1283791670955125739 * exp(-x * x); }
TWINBENCH_HOST_DEVICE float erf_derivative(float x) { return 1.12837917f * exp(-x * x); }

// ---- GELU ---------------------------------------------------------------------------------------------------------
// The exact form, in ATen's order of operations. As there, the left tail cancels (absolute error about |x| * 6e-8) and
// -infinity gives NaN.
TWINBENCH_HOST_DEVICE float gelu(float x) { return x * 0.5f * (1.0f + erf(x * 0.707106781f)); }
TWINBENCH_HOST_DEVICE double gelu(double x) { return x * 0.5 * (1.0 + erf(x * 0.70710678118654752440)); }

// Distribution function + x * density of the normal distribution; both infinities give NaN (0 * infinity).
TWINBENCH_HOST_DEVICE float gelu_derivative(float x) {
  const float cumulative = 0.5f * (1.0f + erf(x * 0.707106781f));
  return multiply_add(x, 0.398942280f * exp(-0.5f * x * x), cumulative);
}
TWINBENCH_HOST_DEVICE double gelu_derivative(double x) {
  const double cumulative = 0.5 * (1.0 + erf(x * 0.70710678118654752440));
  return multiply_add(x, 0.39894228040143267794 * exp(-0.5 * x * x), cumulative);
}

// ---- derivatives, from the output where that is cheaper -----------------------------------------------------------
template <class Real>
TWINBENCH_HOST_DEVICE Real exp_derivative_from_output(Real y) {
  return y;
}
template <class Real>
TWINBENCH_HOST_DEVICE Real tanh_derivative_from_output(Real y) {
  return (Real(1) - y) * (Real(1) + y);  // keeps its digits near |y| = 1, where 1 - y * y would lose half of them
}
template <class Real>
TWINBENCH_HOST_DEVICE Real sigmoid_derivative_from_output(Real y) {
  return y * (Real(1) - y);
}
}  // namespace twinbench::kernels
