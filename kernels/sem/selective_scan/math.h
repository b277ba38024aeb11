// Arithmetic of sem.selective_scan (C13), shared by host and device: real parts and imaginary ones, no complex type.
#pragma once

#include "kernels/common/fused.h"
#include "kernels/common/math.h"
#include "kernels/common/sine_cosine.h"

namespace twinbench::sem::selective_scan {

template <class Real>
struct Number {
  Real real, imaginary;
};

// A step's length or turn of exp(logit): within [1e-4, 2]. NaN stays NaN, as no comparison with it holds.
template <class Real>
TWINBENCH_HOST_DEVICE Real clamped_step(Real exponential) {
  const Real low = exponential < Real(1e-4) ? Real(1e-4) : exponential;
  return low > Real(2) ? Real(2) : low;
}
// The gradient of a logit from that of its step: none where the clamp acts.
template <class Real>
TWINBENCH_HOST_DEVICE Real logit_gradient(Real exponential, Real of_step) {
  return exponential > Real(1e-4) && exponential < Real(2) ? of_step * exponential : Real(0);
}

// ln(1 + e^x), at set-up or once a state.
template <class Real>
TWINBENCH_HOST_DEVICE Real softplus(Real x) {
  return (x > Real(0) ? x : Real(0)) + std::log1p(kernels::exp(-kernels::absolute(x)));
}

using kernels::fused;

// A state's rate and phase in the units of decay_of: of -ln 2 (so at most 0), and half turns.
struct Scale {
  static constexpr double kRate = -0.69314718055994530942, kPhase = 3.14159265358979323846;
};

// 2^(length * shrinking) turned by turn * half_turns: what of a state is left after a step. Only whole numbers have to
// be taken off, which is exact. At most 1e-7 off for phases that are no larger than a turn.
TWINBENCH_HOST_DEVICE Number<float> decay_of(float length, float shrinking, float turn, float half_turns) {
  const float power = length * shrinking;
#if defined(__CUDA_ARCH__)
  const float modulus = ::exp2f(power);
#else
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. NaN passes the selection and the product.
  // Below 2^-125 it is that.
  const float bounded = power < -125.0f ? -125.0f : power;
  const float shifted = bounded + 12582912.0f, r = bounded - (shifted - 12582912.0f);
  float e = 1.535336050e-04f;  // 2^r
  e = fused(e, r, 1.339887502e-03f);
  e = fused(e, r, 9.618436918e-03f);
  e = fused(e, r, 5.550332367e-02f);
  e = fused(e, r, 2.402264774e-01f);
  e = fused(e, r, 6.931471825e-01f);
  e = fused(e, r, 1.0f);
  const float modulus = e * kernels::float_of_bits((kernels::bits_of(shifted) + 127u) << 23);
#endif
  const float angle = turn * half_turns, whole = angle + 12582912.0f, rest = angle - (whole - 12582912.0f);
  const float s = rest * rest;
  float sine = 7.722012699e-02f;  // of pi * rest, divided by rest
  sine = fused(sine, s, -5.980451703e-01f);
  sine = fused(sine, s, 2.550031424e+00f);
  sine = fused(sine, s, -5.167706966e+00f);
  sine = fused(sine, s, 3.141592503e+00f);
  float cosine = -2.442069724e-02f;
  cosine = fused(cosine, s, 2.349539250e-01f);
  cosine = fused(cosine, s, -1.335216045e+00f);
  cosine = fused(cosine, s, 4.058709621e+00f);
  cosine = fused(cosine, s, -4.934802055e+00f);
  cosine = fused(cosine, s, 1.0f);
  // An odd number of half turns turns both round.
  const float signed_modulus = kernels::float_of_bits(kernels::bits_of(modulus) ^ (kernels::bits_of(whole) << 31));
  return {signed_modulus * cosine, signed_modulus * (sine * rest)};
}
TWINBENCH_HOST_DEVICE Number<double> decay_of(double length, double shrinking, double turn, double half_turns) {
  const double modulus = std::exp2(length * shrinking);
  const auto direction = kernels::sine_cosine(Scale::kPhase * (turn * half_turns));
  return {modulus * direction.cosine, modulus * direction.sine};
}
// The larger of two squares; NaN is larger than any.
TWINBENCH_HOST_DEVICE float larger_square(float a, float b) {
  const std::uint32_t first = kernels::bits_of(a), second = kernels::bits_of(b);
  return kernels::float_of_bits(first > second ? first : second);
}
TWINBENCH_HOST_DEVICE double larger_square(double a, double b) { return a > b || a != a ? a : b; }

// sum + a * b, and with the conjugate of a.
template <class Real>
TWINBENCH_HOST_DEVICE Number<Real> add_product(Number<Real> a, Number<Real> b, Number<Real> sum) {
  return {fused(-a.imaginary, b.imaginary, fused(a.real, b.real, sum.real)),
          fused(a.imaginary, b.real, fused(a.real, b.imaginary, sum.imaginary))};
}
template <class Real>
TWINBENCH_HOST_DEVICE Number<Real> add_conjugate_product(Number<Real> a, Number<Real> b, Number<Real> sum) {
  return add_product(Number<Real>{a.real, -a.imaginary}, b, sum);
}

// The state after a step.
template <class Real>
TWINBENCH_HOST_DEVICE Number<Real> next_state(Number<Real> decay, Number<Real> state, Number<Real> projected,
                                              Real length) {
  return add_product(decay, state, Number<Real>{length * projected.real, length * projected.imaginary});
}

// Shares of a state in the gradients at one step, from the gradient of the state itself, `of_state`.
template <class Real>
struct StepGradient {
  Number<Real> carried;     // of the state before, through the decay
  Real of_length, of_turn;  // of the step's length and turn
  Real shrinking, turning;  // times the step's length: of minus the rate; times its turn: of the phase
};
template <class Real>
TWINBENCH_HOST_DEVICE StepGradient<Real> step_gradient(Number<Real> of_state, Number<Real> decay, Number<Real> before,
                                                       Number<Real> projected, Real rate, Real phase) {
  const Number<Real> zero{Real(0), Real(0)};
  const Number<Real> carried = add_conjugate_product(decay, of_state, zero);
  const Real shrinking = fused(carried.real, before.real, carried.imaginary * before.imaginary);
  const Real turning = fused(carried.imaginary, before.real, -(carried.real * before.imaginary));
  const Real growing = fused(of_state.real, projected.real, of_state.imaginary * projected.imaginary);
  return {carried, growing - rate * shrinking, phase * turning, shrinking, turning};
}

}  // namespace twinbench::sem::selective_scan
