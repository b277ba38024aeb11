// Columns of the output `work` of the whole flow's backward pass (C17): what its two passes did, for the formulas of
// their operators and bytes.
#pragma once

#include <cstdint>

namespace twinbench::energy_flow::flow_backward {

enum Work : std::int64_t {
  kFlowSteps,
  kStopTests,
  kPlacedFlows,
  kChildren,
  kCollectedFlows,
  kCellsReached,
  kTapeBytes,     // held when the forward pass has ended
  kTapeLeft,      // held when the backward pass has
  kTapePeak,      // held at most
  kStepForwards,  // steps that were computed forward, again ones too
  kWorkColumns
};

}  // namespace twinbench::energy_flow::flow_backward
