// Run energy_flow.backward: the whole pass of a batch and back, to the gradients of all flow parameters.
#include <ATen/ATen.h>

#include "scenarios/runner/component_source.h"
#include "src/energy_flow/common/flow_work.h"

namespace twinbench::energy_flow::backward {
namespace {

// Bytes of the tape where the forward pass has ended, and where the backward pass has.
Readings tape_of(const NamedTensors&, const NamedTensors& results, const Setting&) {
  const at::Tensor work = results["work"].to(at::kDouble);
  const auto column = [&](flow_backward::Work of) { return work[of].item<double>(); };
  return {{"tape_bytes", column(flow_backward::kTapeBytes)}, {"tape_left", column(flow_backward::kTapeLeft)}};
}

}  // namespace

RunSource make_source() {
  return component_source("energy_flow.flow_backward",
                          "the whole pass of a batch and back, to the gradients of all flow parameters",
                          {Tolerance::Kind::kBound, {1e-3, 1e-4}, {6e-2, 3e-2}, "run"}, Pass::kBackward, tape_of);
}

}  // namespace twinbench::energy_flow::backward
