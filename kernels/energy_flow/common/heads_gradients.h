// Gradients of the carrier heads for one flow (C08, C17). Host and device. Real is float; double serves the CPU path's
// fp64 operator. In the namespace of the component that specifies it; the whole backward pass takes it too.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/heads.h"

namespace twinbench::energy_flow::carrier_heads {

// 1 where the clamp passes a, boundary included.
template <class Real>
TWINBENCH_HOST_DEVICE Real clamp_half_derivative(Real a) {
  return kernels::absolute(a) <= Real(0.5) ? Real(1) : Real(0);
}

// Gradients of what the loss reads. Spawn measure and count carry none.
template <class Real>
struct ResultGradients {
  Real energy;
  Vector3<Real> displacement, delta, raw;
  Real child_energy;
};

// Gradients of the second layers' sums.
template <class Real>
struct SumGradients {
  static constexpr int kStored = 4;  // energy, displacement x y z
  Real energy;
  Vector3<Real> displacement;
  Real child;

  TWINBENCH_HOST_DEVICE void store(Real* rows, std::int64_t flow) const {
    rows[kStored * flow] = energy;
    rows[kStored * flow + 1] = displacement.x;
    rows[kStored * flow + 2] = displacement.y;
    rows[kStored * flow + 3] = displacement.z;
  }
  // As the products take them.
  TWINBENCH_HOST_DEVICE void round() {
    energy = kernels::round_to_bf16(energy);
    displacement = {kernels::round_to_bf16(displacement.x), kernels::round_to_bf16(displacement.y),
                    kernels::round_to_bf16(displacement.z)};
  }
};

template <class Real>
TWINBENCH_HOST_DEVICE Real displacement_gradient(Real scale, Real displacement, Real own, Real delta, Real raw) {
  return own + scale * clamp_half_derivative(scale * displacement) * (delta + raw);
}

template <class Real>
TWINBENCH_HOST_DEVICE SumGradients<Real> finish_backward(const Rule<Real>& rule, const Sums<Real>& sums,
                                                         std::int32_t spawn_count, const ResultGradients<Real>& grad) {
  SumGradients<Real> result;
  const Real energy = kernels::tanh(sums.energy);
  const Real grad_energy = grad.energy + (rule.gate ? Real(0) : grad.child_energy);
  result.energy = grad_energy * kernels::tanh_derivative_from_output(energy);
  result.displacement = {
      displacement_gradient(rule.scale, sums.displacement.x, grad.displacement.x, grad.delta.x, grad.raw.x),
      displacement_gradient(rule.scale, sums.displacement.y, grad.displacement.y, grad.delta.y, grad.raw.y),
      displacement_gradient(rule.scale, sums.displacement.z, grad.displacement.z, grad.delta.z, grad.raw.z)};
  result.child = Real(0);
  if (rule.gate)
    result.child = grad.child_energy * kernels::tanh_derivative_from_output(kernels::tanh(sums.child)) /
                   static_cast<Real>(spawn_count + 1);
  return result;
}

}  // namespace twinbench::energy_flow::carrier_heads
