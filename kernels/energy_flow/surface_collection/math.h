// Which entries energy_flow.surface_collection (C11) collects; cells, weights, sums and the gradient of an energy are
// in energy_flow/common. Host and device.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/collection.h"

namespace twinbench::energy_flow::surface_collection {

// Whether the entry of a slot is collected: completed at either plane (status 2, 3), and in this forward.
TWINBENCH_HOST_DEVICE bool is_collected(std::uint8_t status, std::int32_t forward_id, std::int32_t forward) {
  return (status & 0xfe) == 2 && forward_id == forward;
}

}  // namespace twinbench::energy_flow::surface_collection
