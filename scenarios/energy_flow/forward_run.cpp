// Run energy_flow.forward: the whole forward pass of a batch of embeddings, again and again.
#include "scenarios/runner/component_source.h"

namespace twinbench::energy_flow::forward {
namespace {

constexpr char kComponent[] = "energy_flow.flow_forward";

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return component_workload(kComponent, config); }

}  // namespace

RunSource make_source() {
  RunSource source =
      component_source(kComponent, "the whole forward pass of a batch, from embeddings to surfaces; nothing is trained",
                       {Tolerance::Kind::kBound, {1e-3, 1e-4}, {6e-2, 3e-2}, "run"});
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::forward
