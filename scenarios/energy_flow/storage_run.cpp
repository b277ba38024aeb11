// Run energy_flow.storage: forwards over one storage of flows: births, updates, ends, and the reset between them.
#include "scenarios/runner/component_source.h"

namespace twinbench::energy_flow::storage {
namespace {

constexpr char kComponent[] = "energy_flow.flow_storage";

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return component_workload(kComponent, config); }

}  // namespace

RunSource make_source() {
  RunSource source = component_source(kComponent, "forwards over one storage of flows, each leaving it as it was",
                                      {Tolerance::Kind::kExact, {}, {}, "exact"});
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::storage
