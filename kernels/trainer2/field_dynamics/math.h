// Arithmetic of trainer2.field_dynamics (C15), shared by host and device, of one real number of the field.
#pragma once

#include <cmath>

#include "src/common/host_device.h"

namespace twinbench::trainer2::field_dynamics {

struct Constants {
  float half_kick = 0, drift = 0, kinetic = 0, stiffness = 0, turn = 0;
};

TWINBENCH_HOST_DEVICE float laplacian(float right, float left, float up, float down, float here) {
  return (right + left) + (up + down) - 4.0f * here;
}
// `outside`: the force of the row on a real part, nothing on an imaginary one.
TWINBENCH_HOST_DEVICE float force_on(const Constants& by, float laplacian, float here, float rest, float outside) {
  return by.kinetic * laplacian - by.stiffness * (here - rest) + outside;
}
TWINBENCH_HOST_DEVICE float modulus(float real, float imaginary) {
  return std::sqrt(real * real + imaginary * imaginary);
}

}  // namespace twinbench::trainer2::field_dynamics
