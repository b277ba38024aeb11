// Numbers of placed flows (C09); their coordinates are in energy_flow/common.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/placement.h"

namespace twinbench::energy_flow::flow_placement {

// Unique in a run: the sample's key in the upper half, the flow's number in its sample in the lower.
TWINBENCH_HOST_DEVICE std::int64_t flow_uid(std::int64_t sample_key, std::int32_t local_id) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(sample_key) << 32 | static_cast<std::uint32_t>(local_id));
}

}  // namespace twinbench::energy_flow::flow_placement
