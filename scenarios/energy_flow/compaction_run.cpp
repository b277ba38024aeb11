// Run energy_flow.compaction: the flows of one storage, few or many of its slots, taken a step further.
#include "scenarios/runner/component_source.h"

namespace twinbench::energy_flow::compaction {

RunSource make_source() {
  return component_source("energy_flow.flow_compaction",
                          "the rows of all active flows of a storage taken a step further",
                          {Tolerance::Kind::kBound, {2e-6, 2e-6}, {2e-6, 2e-6}, "elementwise"});
}

}  // namespace twinbench::energy_flow::compaction
