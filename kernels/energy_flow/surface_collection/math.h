// Which entries energy_flow.surface_collection (C11) collects, and the gradient of an energy; cells, weights and sums
// are in energy_flow/common. Host and device.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/collection.h"

namespace twinbench::energy_flow::surface_collection {

// Whether the entry of a slot is collected: completed at either plane (status 2, 3), and in this forward.
TWINBENCH_HOST_DEVICE bool is_collected(std::uint8_t status, std::int32_t forward_id, std::int32_t forward) {
  return (status & 0xfe) == 2 && forward_id == forward;
}

// Of a flow's energy (decision 16): through the energy alone, distance and age being constants.
TWINBENCH_HOST_DEVICE float energy_gradient(float energy, float share, float factor, float total, float mean,
                                            float gradient) {
  const float sign = energy > 0.0f ? 1.0f : energy < 0.0f ? -1.0f : 0.0f;
  return gradient * (share / total) * (1.0f + sign * factor * (energy - mean));
}

}  // namespace twinbench::energy_flow::surface_collection
