// What a training window with texts counts and costs (C21, C24): calls of its parts, kernels on a card, and how a
// refusal of a text comes by one.
#pragma once

#include <cstdint>

#include "src/energy_flow/common/window_texts.h"

namespace twinbench::energy_flow::train_step {

inline std::int64_t taken(const Setting& s) {  // micro-steps with rows
  const Window window(s);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < window.micro_steps; ++i) count += window.rows_of(i) > 0;
  return count;
}

// Calls of the flows and of the bridge's parts in a window with texts; of one without, nobody announces any.
inline std::int64_t flow_calls(Variant variant, const NamedTensors&, const Setting& s) {
  if (!s.on("text_bridge")) return 0;
  const bool again = variant == Variant::kBaseline && s.on("repeated_forward");
  return taken(s) + (again ? Window(s).rows() : 0);
}
inline std::int64_t encoder_calls(Variant variant, const NamedTensors&, const Setting& s) {
  if (!encodes(s)) return 0;
  return variant == Variant::kBaseline ? Window(s).rows() : taken(s);
}
inline std::int64_t decoder_calls(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (!s.on("text_bridge")) return 0;
  if (variant == Variant::kBaseline && s.on("repeated_forward")) return Window(s).rows();
  // The counts are those after the window.
  const std::int64_t attempt = outputs["counts"].cpu().contiguous().const_data_ptr<std::int64_t>()[kAttempts] - 1;
  if (!is_due(s, attempt)) return 0;
  return variant == Variant::kBaseline ? most_decoded(s) : 1;
}

// Beside the arena, in which the encoder's parameters are.
inline Cost cost_of_texts(const Setting& s) {
  if (!s.on("text_bridge")) return {};
  Cost all;
  if (encodes(s)) all.flops = kBridgeEncoder.spec().cost(encoder_setting(s, Window(s).rows())).flops;
  if (s.option("decoder_step_interval") != 1 || most_decoded(s) == 0) return all;  // else it may be due, or not
  const Cost decoder = kBridgeDecoder.spec().cost(decoder_setting(s, most_decoded(s)));
  return {all.bytes + decoder.bytes, all.flops + decoder.flops};
}

// Of the encoder on a card: kernels and products there, 7 + 10 a layer, and back, 14 + 18 a layer; in modes that round
// one a layer more either way, and the weights once a window. Beside them the staged texts.
inline std::int64_t most_text_launches(const Setting& s) {
  if (!s.on("text_bridge") || taken(s) == 0) return 0;
  const std::int64_t layers = s.size("encoder_layers"), rounds = s.dtype == Dtype::kBf16 ? 1 : 0;
  const std::int64_t encoder = encodes(s) ? s.size("micro_steps") * (22 + (28 + 2 * rounds) * layers) : 0;
  const std::int64_t decoder =
      most_decoded(s) > 0 ? kBridgeDecoder.spec().most_launches(decoder_setting(s, most_decoded(s))) + 1 : 0;
  return encoder + rounds * (4 * layers + 2) + decoder;
}

// A setting and its inputs as the first case with texts has them, for what is wrong with a text.
inline Refusal of_a_text(Refusal refusal) {
  refusal.spoil = [spoil = refusal.spoil](NamedTensors& inputs, Setting& s) {
    const ComponentSpec& spec = find_component("energy_flow.train_step").spec;
    for (const Case& one : spec.cases)
      if (one.name == "text") s.input_case = one;
    s = completed(spec.signature, s);
    inputs = generate_inputs(spec, s, 1);
    spoil(inputs, s);
  };
  return refusal;
}

}  // namespace twinbench::energy_flow::train_step
