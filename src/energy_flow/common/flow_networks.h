// The networks that flows go through, as a specification lists them: their parameters, how these are drawn, and the
// worked examples' (0.7).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/draws.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow {

inline void add_neuron(Signature& s, bool trained) {
  const auto one = [trained](InputSpec input) { return trained ? input : input.without_gradient(); };
  s.inputs.push_back(one(weight("coordinate_weight", "3, 3", kaiming(50))));
  s.inputs.push_back(one(bias("coordinate_bias", "3", normal(51, 0.1))));
  const std::string in[] = {"4", "neuron_width", "neuron_width"}, out[] = {"neuron_width", "neuron_width", "features"};
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    const std::string number = std::to_string(layer + 1);
    s.inputs.push_back(one(weight("neuron_weight_" + number, out[layer] + ", " + in[layer], kaiming(52 + 4 * layer))));
    s.inputs.push_back(one(bias("neuron_bias_" + number, out[layer], normal(53 + 4 * layer, 0.1))));
    if (layer == 2) break;
    s.inputs.push_back(one(gain("neuron_gain_" + number, out[layer], normal(54 + 4 * layer, 0.1)).shifted(1)));
    s.inputs.push_back(one(bias("neuron_shift_" + number, out[layer], normal(55 + 4 * layer, 0.1))));
  }
}

// The heads' layers, drawn at `number` and the thirteen after it. The gate decides a count: it is not trained.
inline void add_heads(Signature& s, std::uint32_t number, bool trained = true) {
  add_layer(s, "energy_hidden_", "energy_width", "hidden", number, trained);
  add_layer(s, "energy_out_", "1", "energy_width", number + 2, trained);
  add_layer(s, "displacement_hidden_", "head_width", "hidden", number + 4, trained);
  add_layer(s, "displacement_out_", "3", "head_width", number + 6, trained);
  add_layer(s, "gate_hidden_", "head_width", "hidden", number + 8, false);
  add_layer(s, "gate_out_", "1", "head_width", number + 10, false);
  add_layer(s, "child_", "1", "hidden", number + 12, trained);
}

inline void add_carrier(Signature& s, bool trained) {
  const std::string input = "3 * hidden, layer == 0 ? features + 1 : hidden";
  for (const InputSpec& one :
       {weight("weight_input", input, xavier(128)), weight("weight_hidden", "3 * hidden, hidden", xavier(129)),
        bias("bias_input", "3 * hidden", uniform(130, -0.1, 0.1)),
        bias("bias_hidden", "3 * hidden", uniform(131, -0.1, 0.1))})
    s.inputs.push_back(trained ? one.one_per("layers", 4) : one.one_per("layers", 4).without_gradient());
  add_heads(s, 64, trained);
}

// What the loss of a surface can be differentiated by: everything but the spawn gate, which decides alone.
inline void add_networks(Signature& s, bool trained) {
  add_neuron(s, trained);
  add_carrier(s, trained);
}

// Drawn parameters as training starts them.
inline void start_networks(NamedTensors& inputs, const Setting& setting) {
  const std::int64_t hidden = setting.size("hidden");
  for (std::int64_t l = 0; l < setting.size("layers"); ++l)  // the update gate starts open (decision 20)
    inputs["bias_hidden_" + std::to_string(l)].narrow(0, hidden, hidden).add_(1.0);
  inputs["gate_out_weight"].mul_(20.0);  // gates over the whole of 0 .. 1: few lie within a decision margin
}

inline void use_toy(const at::Tensor& at, std::int64_t k) {
  at.copy_(at.dim() == 2 ? draws::toy_weight(at.size(0), at.size(1), k) : draws::toy_bias(at.size(0), k));
}

// The worked examples' weights, by the k of each component's section.
inline void use_toy_networks(NamedTensors& inputs, std::int64_t layers) {
  std::vector<std::pair<std::string, std::int64_t>> toys = {{"coordinate_weight", 7},
                                                            {"neuron_weight_1", 8},
                                                            {"neuron_weight_2", 9},
                                                            {"neuron_weight_3", 10},
                                                            {"coordinate_bias", 0},
                                                            {"neuron_bias_1", 1},
                                                            {"neuron_bias_2", 2},
                                                            {"neuron_bias_3", 3},
                                                            {"energy_hidden_weight", 2},
                                                            {"energy_hidden_bias", 2},
                                                            {"energy_out_weight", 5},
                                                            {"energy_out_bias", 1},
                                                            {"displacement_out_bias", 5},
                                                            {"displacement_hidden_weight", 6},
                                                            {"displacement_hidden_bias", 4},
                                                            {"displacement_out_weight", 9},
                                                            {"gate_hidden_weight", 3},
                                                            {"gate_hidden_bias", 6},
                                                            {"gate_out_weight", 8},
                                                            {"gate_out_bias", 2},
                                                            {"child_weight", 7},
                                                            {"child_bias", 4}};
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::string number = "_" + std::to_string(l);
    toys.insert(toys.end(), {{"weight_input" + number, 1 + l},
                             {"weight_hidden" + number, 4 + l},
                             {"bias_input" + number, 1 + l},
                             {"bias_hidden" + number, 3 + l}});
  }
  for (const auto& [name, k] : toys) use_toy(inputs[name], k);
  for (const char* one : {"neuron_gain_1", "neuron_gain_2"}) inputs[one].fill_(1);
  for (const char* none : {"neuron_shift_1", "neuron_shift_2"}) inputs[none].zero_();
}

}  // namespace twinbench::energy_flow
