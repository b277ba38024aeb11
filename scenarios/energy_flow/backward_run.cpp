// Run energy_flow.backward: the whole pass of a batch and back, to the gradients of all flow parameters.
#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "scenarios/runner/component_source.h"
#include "src/energy_flow/common/flow_work.h"
#include "src/energy_flow/common/footprint.h"

namespace twinbench::energy_flow::backward {
namespace {

// What the documented formula gives where every flow takes every step (C31, C34).
double modelled_tape(const Setting& s) {
  const ModelSizes sizes{.hidden = s.size("hidden"),
                         .layers = s.size("layers"),
                         .neuron_width = s.size("neuron_width"),
                         .features = s.size("features"),
                         .half_hidden = s.on("hidden_dtype")};
  const std::vector<std::int64_t> active(
      static_cast<std::size_t>(s.size("max_steps")),
      s.size("samples") * std::min(s.size("height") * s.size("width"), s.size("quota")));
  return tape_bytes(active, saved_bytes(sizes), saved_state_bytes(sizes),
                    static_cast<std::int64_t>(s.option("ckpt_every")));
}

// Bytes of the tape where the forward pass has ended, where the backward pass has, and at most; steps computed.
Readings tape_of(const NamedTensors&, const NamedTensors& results, const Setting& setting) {
  const at::Tensor work = results["work"].to(at::kDouble);
  const auto column = [&](flow_backward::Work of) { return work[of].item<double>(); };
  return {{"tape_bytes", column(flow_backward::kTapeBytes)},
          {"tape_left", column(flow_backward::kTapeLeft)},
          {"tape_peak", column(flow_backward::kTapePeak)},
          {"peak_of_modelled", column(flow_backward::kTapePeak) / std::max(1.0, modelled_tape(setting))},
          {"step_forwards", column(flow_backward::kStepForwards)}};
}

}  // namespace

RunSource make_source() {
  return component_source("energy_flow.flow_backward",
                          "the whole pass of a batch and back, to the gradients of all flow parameters",
                          {Tolerance::Kind::kBound, {1e-3, 1e-4}, {6e-2, 3e-2}, "run"}, Pass::kBackward, tape_of);
}

}  // namespace twinbench::energy_flow::backward
