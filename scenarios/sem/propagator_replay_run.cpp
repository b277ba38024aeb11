// Run sem.propagator_replay: calls of the Cayley step one after the other, some with the input of the one before.
#include "scenarios/runner/component_source.h"
#include "scenarios/runner/config.h"

namespace twinbench::sem::propagator_replay {
namespace {

constexpr char kComponent[] = "sem.lazy_gate";

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) {
  ScenarioConfig repeating = config;
  repeating.options["replay"] = 1;
  return component_workload(kComponent, repeating);
}

}  // namespace

RunSource make_source() {
  // C07: each within its residual, 1e-6 and 5e-7, and 3e-7 of rounding, of the exact solution; times sqrt(1 + 0.74^2)
  // and the largest row's norm, about 26 at the documented width.
  RunSource source = component_source(kComponent, "calls of the Cayley step, nine of twenty with the input before",
                                      {Tolerance::Kind::kBound, {0, 6e-5}, {0, 6e-5}, "C07"});
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::sem::propagator_replay
