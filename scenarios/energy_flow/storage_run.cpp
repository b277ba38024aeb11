// Run energy_flow.storage: forwards over one storage of flows: births, updates, ends, and the reset between them.
#include "scenarios/runner/component_source.h"

namespace twinbench::energy_flow::storage {

RunSource make_source() {
  return component_source("energy_flow.flow_storage", "forwards over one storage of flows, each leaving it as it was",
                          {Tolerance::Kind::kExact, {}, {}, "exact"});
}

}  // namespace twinbench::energy_flow::storage
