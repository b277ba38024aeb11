// Run energy_flow.compaction: the flows of one storage, few or many of its slots, taken a step further.
#include "scenarios/runner/component_source.h"

namespace twinbench::energy_flow::compaction {
namespace {

constexpr char kComponent[] = "energy_flow.flow_compaction";

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return component_workload(kComponent, config); }

}  // namespace

RunSource make_source() {
  RunSource source = component_source(kComponent, "the rows of all active flows of a storage taken a step further",
                                      {Tolerance::Kind::kBound, {2e-6, 2e-6}, {2e-6, 2e-6}, "elementwise"});
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::compaction
