// Arithmetic of a rotor (trainer2 C08), shared by host and device: one plane turns two components.
#pragma once

#include <cmath>

#include "src/common/host_device.h"

namespace twinbench::trainer2 {

struct Turned {
  float a, b;
};

// (a, b) turned by an angle, counter-clockwise.
TWINBENCH_HOST_DEVICE Turned turned(float angle, float a, float b) {
  const float cosine = std::cos(angle), sine = std::sin(angle);
  return {cosine * a - sine * b, sine * a + cosine * b};
}

}  // namespace twinbench::trainer2
