// Arithmetic of the list of flows that a step processes (C13): who stays in it, where children go, and when storage is
// worth moving together. Host and device.
#pragma once

#include <cstdint>

#include "src/common/host_device.h"

namespace twinbench::energy_flow {

constexpr std::uint8_t kLiveStatus = 1;  // of an active flow in storage (C12)
constexpr std::int32_t kRowTile = 128;   // rows that a product takes at once

// Rows that are processed beside the flows, because a tile has them: at most 127.
TWINBENCH_HOST_DEVICE std::int32_t padding_rows(std::int32_t active) {
  return (kRowTile - active % kRowTile) % kRowTile;
}

// active < 0.5 * span, exactly. span: slots from the first to the last one in use.
TWINBENCH_HOST_DEVICE bool is_sparse(std::int32_t active, std::int32_t span) { return 2 * std::int64_t{active} < span; }

// Whether a step, the first being 0, ends with the question above. interval 0: never.
TWINBENCH_HOST_DEVICE bool is_cleanup_step(std::int64_t step, std::int64_t interval) {
  return interval > 0 && (step + 1) % interval == 0;
}

// A flow's entry in the list that is worked through: its sample while it is live, else the sample's complement, which
// is below 0.
TWINBENCH_HOST_DEVICE std::int32_t sample_of_entry(std::int32_t entry) { return entry < 0 ? ~entry : entry; }

// How many children have a parent before this place of the list. Parents ascend; from the first -1 on there are none.
TWINBENCH_HOST_DEVICE std::int32_t children_of_earlier(const std::int32_t* parent, std::int32_t children,
                                                       std::int32_t place) {
  std::int32_t low = 0, high = children;
  while (low < high) {
    const std::int32_t middle = low + (high - low) / 2;
    const bool earlier = static_cast<std::uint32_t>(parent[middle]) < static_cast<std::uint32_t>(place);
    low = earlier ? middle + 1 : low;
    high = earlier ? high : middle;
  }
  return low;
}

}  // namespace twinbench::energy_flow
