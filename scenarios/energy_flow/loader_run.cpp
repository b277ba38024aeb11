// Run energy_flow.loader: batches from a prepared dataset file, opened anew in every step.
#include <ATen/ATen.h>

#include "scenarios/runner/component_source.h"

namespace twinbench::energy_flow::loader {
namespace {

Readings delivered(const NamedTensors&, const NamedTensors& results, const Setting&) {
  return {{"rows", static_cast<double>(results["rows"].numel())}};
}

}  // namespace

RunSource make_source() {
  return component_source("energy_flow.dataset_loader", "an epoch's first batches, or all, from a prepared file",
                          {Tolerance::Kind::kExact, {}, {}, "exact"}, Pass::kForward, delivered);
}

}  // namespace twinbench::energy_flow::loader
