// Run energy_flow.forward: the whole forward pass of a batch of embeddings, again and again.
#include <ATen/ATen.h>

#include "scenarios/runner/component_source.h"
#include "src/energy_flow/common/flow_statistics.h"

namespace twinbench::energy_flow::forward {
namespace {

// What became of all samples' flows, and where the surfaces are not zero.
Readings lives_of(const NamedTensors&, const NamedTensors& results, const Setting&) {
  using namespace flow_forward;
  const at::Tensor all = results["stats"].to(at::kLong).sum(0);
  const auto sum = [&](Statistic of) { return static_cast<double>(all[of].item<std::int64_t>()); };
  const double collected = sum(kDoneZ0) + sum(kDoneZD) + sum(kProjectedAge) + sum(kProjectedStop);
  return {{"created", sum(kCreated)},
          {"collected", collected},
          {"died_bounds", sum(kDiedBounds)},
          {"died_non_finite", sum(kDiedNonFinite)},
          {"dropped_initial", sum(kDroppedInitial)},
          {"dropped_spawn", sum(kDroppedSpawn)},
          {"requests", sum(kRequests)},
          {"steps", sum(kSteps)},
          {"cells_not_zero", static_cast<double>(results["surface"].ne(0).sum().item<std::int64_t>())}};
}

}  // namespace

RunSource make_source() {
  return component_source("energy_flow.flow_forward",
                          "the whole forward pass of a batch, from embeddings to surfaces; nothing is trained",
                          {Tolerance::Kind::kBound, {1e-3, 1e-4}, {6e-2, 3e-2}, "run"}, Pass::kForward, lives_of);
}

}  // namespace twinbench::energy_flow::forward
