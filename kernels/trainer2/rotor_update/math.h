// Arithmetic of trainer2.rotor_update (C19), shared by host and device: one plane's change, and the wrap of an angle.
#pragma once

#include <cmath>

#include "src/common/host_device.h"

namespace twinbench::trainer2::rotor_update {

constexpr float kLeastLength = 1e-6f;            // of the velocity in a plane, below which the plane stays
constexpr float kFullTurn = 6.283185307179586f;  // computed in fp64, rounded to fp32 once

struct Change {
  float angle;   // to add; 0 where the plane stays
  bool applied;  // counted in the report
};

// What a plane's angle changes by: scale = (rate * -(LIoR change)); the velocity's two components in the plane. A plane
// stays where the velocity is too short or the change is not finite. Keeps the sign of a zero: it decides between the
// angles -pi and pi.
TWINBENCH_HOST_DEVICE Change change_of(float scale, float a, float b) {
  const float length = std::sqrt(a * a + b * b);
  const float change = scale * std::atan2(b, a) * length;
  const bool applied = !(length < kLeastLength) && std::isfinite(change);
  return {applied ? change : 0.0f, applied};
}

// To [-pi, pi]; rounds to even at the ends. An angle within loses no bit.
TWINBENCH_HOST_DEVICE float wrapped(float theta) { return theta - kFullTurn * std::rint(theta / kFullTurn); }

}  // namespace twinbench::trainer2::rotor_update
