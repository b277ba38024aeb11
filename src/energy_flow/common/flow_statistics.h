// What is told of a sample's flows after a forward pass (C16): the columns of the output `stats`.
#pragma once

#include <cstdint>

namespace twinbench::energy_flow::flow_forward {

enum Statistic : std::int64_t {
  kCreated,
  kDoneZ0,
  kDoneZD,
  kProjectedAge,
  kProjectedStop,
  kDroppedStop,
  kDiedBounds,
  kDiedNonFinite,
  kDroppedInitial,
  kDroppedSpawn,
  kRequests,  // of children
  kCells,     // that flows have reached
  kSteps,
  kReason,  // 1 exhausted, 2 max_steps, 3 threshold, 4 patience
  kStatistics
};

}  // namespace twinbench::energy_flow::flow_forward
