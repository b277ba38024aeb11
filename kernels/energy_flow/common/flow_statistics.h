// The columns of what the whole forward tells of a sample's flows (C16). Host and device.
#pragma once

#include "kernels/energy_flow/common/movement.h"

namespace twinbench::energy_flow::flow_forward {

// Columns of the output `stats`. From 1 to 7 as flow_movement::Outcome counts them.
enum FlowStatistic {
  kCreated,
  kDoneZ0 = flow_movement::kReachedZ0,
  kDoneZD = flow_movement::kReachedZD,
  kProjectedAge = flow_movement::kProjectedByAge,
  kDiedNonFinite = flow_movement::kDiedNonFinite,
  kDroppedInitial,
  kDroppedSpawn,
  kRequests,
  kCells,
  kSteps,
  kReason,
  kStatistics
};

}  // namespace twinbench::energy_flow::flow_forward
