// Run energy_flow.stop: when a flow loop ends, on histories of completed flows.
#include "scenarios/runner/component_source.h"

namespace twinbench::energy_flow::stop {

RunSource make_source() {
  return component_source("energy_flow.adaptive_stop",
                          "when the flow loop of each sample ends, on histories of its flows",
                          {Tolerance::Kind::kExact, {}, {}, "exact"});
}

}  // namespace twinbench::energy_flow::stop
