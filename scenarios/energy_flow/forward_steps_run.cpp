// Run energy_flow.forward_steps: the steps of the whole forward pass one by one, each from a state that can be given.
#include <ATen/ATen.h>

#include "scenarios/runner/component_source.h"
#include "src/energy_flow/common/flow_standing.h"

namespace twinbench::energy_flow::forward_steps {
namespace {

// How near a decision came to going another way, in the unit of the specification's bounds; what flows have done.
Readings decisions_of(const NamedTensors&, const NamedTensors& results, const Setting&) {
  using namespace flow_forward;
  const at::Tensor margin = results["margin"], all = results["stats"].to(at::kLong).sum(0);
  const auto sum = [&](Statistic of) { return static_cast<double>(all[of].item<std::int64_t>()); };
  return {{"margin", margin.numel() == 0 ? 1.0 : margin.min().item<double>()},
          {"requests", sum(kRequests)},
          {"dropped_spawn", sum(kDroppedSpawn)},
          {"died_bounds", sum(kDiedBounds)},
          {"reached", sum(kDoneZ0) + sum(kDoneZD)},
          {"projected_age", sum(kProjectedAge)},
          {"projected_stop", sum(kProjectedStop)}};
}

}  // namespace

RunSource make_source() {
  RunSource source =
      stepwise_source("energy_flow.flow_forward",
                      "the steps of a whole forward pass, one by one: networks, movement, ends, children, the stop",
                      {Tolerance::Kind::kBound, {1e-4, 1e-5}, {3e-2, 1e-2}, "step"}, decisions_of);
  for (const char* of_state : {"position", "energy", "distance", "hidden", "age", "standing", "stop", "steps"})
    source.outputs.push_back(of_state);
  return source;
}

}  // namespace twinbench::energy_flow::forward_steps
