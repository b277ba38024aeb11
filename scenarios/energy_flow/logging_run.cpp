// Run energy_flow.logging: the messages of a run of training steps, which categories and rates let through or not.
#include <ATen/ATen.h>

#include "scenarios/runner/component_source.h"

namespace twinbench::energy_flow::logging {
namespace {

// Lines that were made, those that anybody sees, and the others.
Readings lines_of(const NamedTensors&, const NamedTensors& results, const Setting& setting) {
  const auto formatted = results["formatted"].to(at::kDouble).sum().item<double>(),
             emitted = results["emitted"].to(at::kDouble).sum().item<double>();
  const auto steps = static_cast<double>(setting.size("steps"));
  return {{"emitted", emitted}, {"unseen", formatted - emitted}, {"unseen_per_step", (formatted - emitted) / steps}};
}

}  // namespace

RunSource make_source() {
  return component_source("energy_flow.gated_logging", "messages of training steps, made or not, said or not",
                          {Tolerance::Kind::kExact, {}, {}, "exact"}, Pass::kForward, lines_of);
}

}  // namespace twinbench::energy_flow::logging
