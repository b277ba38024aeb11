// Arithmetic of sem.cayley's rotation (C04) and of its way back, shared by host and device: element by element.
#pragma once

#include "kernels/common/sine_cosine.h"

namespace twinbench::sem::cayley {

template <class Real>
constexpr Real kIntensityFloor = Real(1e-8);

template <class Real>
struct Number {
  Real re, im;
};

// The phase's share of the row's mean intensity, times alpha.
template <class Real>
TWINBENCH_HOST_DEVICE Real intensity_of(Number<Real> psi, Real floor) {
  return (psi.re * psi.re + psi.im * psi.im) / floor;
}
template <class Real>
TWINBENCH_HOST_DEVICE Number<Real> turned(Number<Real> psi, kernels::SineCosine<Real> by) {
  return {psi.re * by.cosine - psi.im * by.sine, psi.re * by.sine + psi.im * by.cosine};
}

// dL/dphase of the gradient of the turned number.
template <class Real>
TWINBENCH_HOST_DEVICE Real phase_gradient(Number<Real> gradient, Number<Real> rotated) {
  return gradient.im * rotated.re - gradient.re * rotated.im;
}
// weighted: alpha * dL/dphase; mean: of weighted * intensity over the row.
template <class Real>
TWINBENCH_HOST_DEVICE Number<Real> turned_back(Number<Real> gradient, kernels::SineCosine<Real> by, Number<Real> psi,
                                               Real weighted, Real mean, Real floor) {
  const Real of_square = Real(2) * ((weighted - mean) / floor);
  return {gradient.re * by.cosine + gradient.im * by.sine + psi.re * of_square,
          gradient.im * by.cosine - gradient.re * by.sine + psi.im * of_square};
}

}  // namespace twinbench::sem::cayley
