// Gradients of one flow's step (C10), whose rules are in energy_flow/common: what passes back through a step. Host and
// device. Real is float; double serves the CPU path's fp64 operator.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/movement.h"

namespace twinbench::energy_flow::flow_movement {

// Gradients of what a flow's step read.
template <class Real>
struct FlowGradients {
  Real raw_x, raw_y, raw_z, next_energy;            // of a flow that moved
  Real position_x, position_y, position_z, energy;  // of one whose sample has stopped
};

// From those of its new position and energy: the plane of a flow that is done is constant in z, one that is gone
// carries none. The distance is a constant by decision 16.
template <class Real>
TWINBENCH_HOST_DEVICE FlowGradients<Real> moved_backward(const Rule& rule, bool stopped, Real x, Real y, Real z,
                                                         std::int32_t age, Real grad_x, Real grad_y, Real grad_z,
                                                         Real grad_energy) {
  const Verdict verdict = verdict_of(rule, stopped, x, y, z, age);
  const Real turned_x = reflected_slope(x) * grad_x, turned_y = reflected_slope(y) * grad_y;
  const bool moves = !stopped & !verdict.gone, rests = stopped & !verdict.gone;
  FlowGradients<Real> grad;
  grad.raw_x = moves ? turned_x : Real(0);
  grad.raw_y = moves ? turned_y : Real(0);
  grad.raw_z = verdict.active ? grad_z : Real(0);
  grad.next_energy = moves ? grad_energy : Real(0);
  grad.position_x = rests ? grad_x : Real(0);
  grad.position_y = rests ? grad_y : Real(0);
  grad.position_z = Real(0);
  grad.energy = rests ? grad_energy : Real(0);
  return grad;
}

}  // namespace twinbench::energy_flow::flow_movement
