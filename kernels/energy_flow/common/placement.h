// Where flows start (C09): normalised coordinates, evaluated in the documented order in fp32 whatever the mode, so that
// every variant gets the same bits. Host and device. In the namespace of the component that specifies it.
#pragma once

#include <cstdint>

#include "src/common/host_device.h"

namespace twinbench::energy_flow::flow_placement {

// 2 index / last - 1: multiply, divide, subtract. last: the largest index of the axis.
TWINBENCH_HOST_DEVICE float normalized(std::int32_t index, std::int32_t last) {
  return 2.0f * static_cast<float>(index) / static_cast<float>(last) - 1.0f;
}

// Of the level in the middle, rounded down: 0 for an even depth.
TWINBENCH_HOST_DEVICE float start_depth(std::int32_t depth) { return normalized(depth / 2, depth); }

}  // namespace twinbench::energy_flow::flow_placement
