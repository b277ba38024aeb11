// Run energy_flow.bridge: a micro-step's forward pass with its texts, again and again.
#include <ATen/ATen.h>

#include "scenarios/runner/component_source.h"
#include "src/energy_flow/common/bridge_parts.h"

namespace twinbench::energy_flow::bridge {
namespace {

// What the variant did in its last step, and the texts that it shows: how many, and a sum that no other texts have.
Readings work_of(const NamedTensors&, const NamedTensors& results, const Setting& setting) {
  const at::Tensor work = results["work"].to(at::kDouble);
  const auto column = [&](BridgeWork of) { return work[of].item<double>(); };
  const at::Tensor bytes = results["predicted_text"].to(at::kDouble).reshape({-1});
  const at::Tensor places = at::arange(1, bytes.numel() + 1, at::kDouble);
  return {{"flow_forwards", column(kFlowForwards)},
          {"flow_samples", column(kFlowSamples)},
          {"encodes", column(kEncodes)},
          {"decodes", column(kDecodes)},
          {"decoded_tokens", column(kDecodedTokens)},
          {"shown", static_cast<double>(shown_texts(setting))},
          {"texts", at::sum(bytes * places).item<double>()}};
}

}  // namespace

RunSource make_source() {
  return component_source("energy_flow.text_bridge",
                          "a micro-step's forward pass with its texts, encoded and decoded; nothing is trained",
                          {Tolerance::Kind::kBound, {1e-3, 1e-4}, {6e-2, 3e-2}, "run"}, Pass::kForward, work_of);
}

}  // namespace twinbench::energy_flow::bridge
