// Run energy_flow.stop: when a flow loop ends, on histories of completed flows.
#include "scenarios/runner/component_source.h"

namespace twinbench::energy_flow::stop {
namespace {

constexpr char kComponent[] = "energy_flow.adaptive_stop";

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return component_workload(kComponent, config); }

}  // namespace

RunSource make_source() {
  RunSource source = component_source(kComponent, "when the flow loop of each sample ends, on histories of its flows",
                                      {Tolerance::Kind::kExact, {}, {}, "exact"});
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::stop
