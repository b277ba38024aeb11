// Arithmetic of sem.selective_scan (C13), shared by host and device: real parts and imaginary ones, no complex type.
#pragma once

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

// exp(-length * rate) turned by turn * phase: what of a state is left after a step.
template <class Real>
TWINBENCH_HOST_DEVICE Number<Real> decay_of(Real length, Real rate, Real turn, Real phase) {
  const Real modulus = kernels::exp(-(length * rate));
  const auto direction = kernels::moderate_sine_cosine(turn * phase);
  return {modulus * direction.cosine, modulus * direction.sine};
}

// a * b + c in one rounding everywhere, so the same bits in every clone (see cpu_clones.h), which without such
// instructions calls a function.
TWINBENCH_HOST_DEVICE float fused(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
TWINBENCH_HOST_DEVICE double fused(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

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
