// Arithmetic of one flow's step (C10): which rule ends it, and where it goes. Host and device. Real is float; double
// serves the CPU path's fp64 operators. In the namespace of the component that specifies it; the whole forward takes it
// too.
#pragma once

#include <cstdint>

#include "kernels/common/float_bits.h"
#include "src/common/host_device.h"

namespace twinbench::energy_flow::flow_movement {

// As flow storage holds it (C12). A projected flow is done on its plane at a distance above zero.
constexpr std::int32_t kActive = 1, kDoneZ0 = 2, kDoneZD = 3, kDead = 4;  // 0: a free slot

// What became of a flow in this step: a column of the counts.
enum Outcome : std::int32_t {
  kStaysActive,
  kReachedZ0,
  kReachedZD,
  kProjectedByAge,
  kProjectedAtStop,
  kDroppedAtStop,
  kDiedOfBounds,
  kDiedNonFinite
};
constexpr int kOutcomes = 8;

// The same for all flows of a step.
struct Rule {
  bool kill = false;                // boundary_mode, else reflect
  bool drop = false;                // on_stop, else project
  std::int32_t projection_age = 0;  // t_proj; 0: off
};

template <class Real>
struct Flow {
  Real x, y, z;
  Real energy;
  Real distance;  // to the plane of a projected flow, else 0
  std::int32_t age, status, outcome;
};

// False for NaN and either infinity.
template <class Real>
TWINBENCH_HOST_DEVICE bool is_finite(Real a) {
  return a - a == Real(0);
}

// One reflection at -1 or 1, then a clamp: what is more than two folds away ends on the border.
template <class Real>
TWINBENCH_HOST_DEVICE Real reflected(Real a) {
  const Real folded = a > Real(1) ? Real(2) - a : a < Real(-1) ? Real(-2) - a : a;
  const Real raised = folded < Real(-1) ? Real(-1) : folded;
  return raised > Real(1) ? Real(1) : raised;
}
// Derivative of reflected(): -1 beyond the border, 0 where the folded value was clamped, 1 up to and at the border.
template <class Real>
TWINBENCH_HOST_DEVICE Real reflected_slope(Real a) {
  const Real beyond = kernels::absolute(a);
  return beyond > Real(3) ? Real(0) : beyond > Real(1) ? Real(-1) : Real(1);
}

// What became of a flow, as masks as wide as what they select: else no loop over flows is one over vectors.
struct Verdict {
  std::int32_t gone, active, on_z0, projected;
  std::int32_t status, outcome;
};

// The first rule that applies: to raw = (x, y, z) of a flow of this age, or, where its sample has stopped, to the place
// where it is. Masks and sums alone: chains of selections between constants become branches.
template <class Real>
TWINBENCH_HOST_DEVICE Verdict verdict_of(const Rule& rule, bool stopped, Real x, Real y, Real z, std::int32_t age) {
  const bool moves = !stopped, finite = is_finite(x) & is_finite(y) & is_finite(z);
  const bool broken = moves & !finite;
  const bool outside =
      rule.kill & moves & finite & ((kernels::absolute(x) > Real(1)) | (kernels::absolute(y) > Real(1)));
  const bool dropped = stopped & rule.drop, rests = stopped & !rule.drop;
  const bool gone = broken | outside | dropped, stays = moves & !gone;
  const bool low = stays & (z <= Real(-1)), high = stays & (z >= Real(1)), inside = stays & !low & !high;
  const bool aged = inside & (rule.projection_age > 0) & (age >= rule.projection_age - 1);  // age + 1 >= t_proj
  const bool projected = aged | rests, done = low | high | projected;
  const bool active = inside & !aged, on_z0 = done & (z <= Real(0));                       // -0 and 0 too
  const std::int32_t status = kDead * gone + kActive * active + (kDoneZD - on_z0) * done;  // kDoneZ0 is one less
  const std::int32_t outcome = kReachedZ0 * low + kReachedZD * high + kProjectedByAge * aged +
                               kProjectedAtStop * rests + kDroppedAtStop * dropped + kDiedOfBounds * outside +
                               kDiedNonFinite * broken;
  return {gone, active, on_z0, projected, status, outcome};
}

// A flow that moves to raw = (x, y, z), with the energy that its carrier gave; or, where its sample has stopped, one
// that ends where it is, with the energy it has. A flow that is gone leaves nothing but zeros.
template <class Real>
TWINBENCH_HOST_DEVICE Flow<Real> moved(const Rule& rule, bool stopped, Real x, Real y, Real z, Real energy,
                                       std::int32_t age) {
  const Verdict verdict = verdict_of(rule, stopped, x, y, z, age);
  const Real folded_x = reflected(x), folded_y = reflected(y), depth_left = Real(1) - kernels::absolute(z);
  const Real across = stopped ? x : folded_x, along = stopped ? y : folded_y;
  const Real plane = verdict.on_z0 ? Real(-1) : Real(1), depth = verdict.active ? z : plane;
  const std::int32_t older = age + !stopped;
  Flow<Real> flow;
  flow.x = verdict.gone ? Real(0) : across;
  flow.y = verdict.gone ? Real(0) : along;
  flow.z = verdict.gone ? Real(0) : depth;
  flow.energy = verdict.gone ? Real(0) : energy;
  flow.distance = verdict.projected ? depth_left : Real(0);
  flow.age = verdict.gone ? 0 : older;
  flow.status = verdict.status;
  flow.outcome = verdict.outcome;
  return flow;
}

}  // namespace twinbench::energy_flow::flow_movement
