// Packing of the networks' parameters, and the rules of a setting.
#include "optimized/energy_flow/common/parameters.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "src/energy_flow/common/exploration_scale.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

// rows [3 * hidden, inner] of one matrix, channels padded to pairs: [pairs, inner, 6].
at::Tensor pairs_of(const at::Tensor& rows, std::int64_t hidden) {
  const std::int64_t inner = rows.size(1), pairs = (hidden + 1) / 2;
  const at::Tensor gates = at::constant_pad_nd(rows.reshape({3, hidden, inner}), {0, 0, 0, 2 * pairs - hidden});
  return gates.view({3, pairs, 2, inner}).permute({1, 3, 0, 2}).reshape({pairs, inner * 6});
}

RecurrentPack packed_layer(const NamedTensors& inputs, const std::string& number, std::int64_t hidden) {
  const at::Tensor &input = inputs["weight_input_" + number], &state = inputs["weight_hidden_" + number];
  const at::Tensor bias_input = inputs["bias_input_" + number].reshape({3, hidden}),
                   bias_hidden = inputs["bias_hidden_" + number].reshape({3, hidden});
  const at::Tensor gates = bias_input.narrow(0, 0, 2) + bias_hidden.narrow(0, 0, 2);
  const std::int64_t pairs = (hidden + 1) / 2;
  const at::Tensor biases = at::constant_pad_nd(
      at::cat({gates, bias_input.narrow(0, 2, 1), bias_hidden.narrow(0, 2, 1)}), {0, 2 * pairs - hidden});
  return {.layout = {.input = input.size(1), .hidden = hidden},
          .weights = at::cat({pairs_of(input, hidden), pairs_of(state, hidden)}, 1).contiguous(),
          .biases = biases.view({4, pairs, 2}).permute({1, 0, 2}).reshape({pairs, kPairSums}).contiguous()};
}

HeadsPack packed_heads(const NamedTensors& inputs, const Setting& setting) {
  HeadsPack heads{.hidden = setting.size("hidden"),
                  .energy = setting.size("energy_width"),
                  .head = setting.size("head_width"),
                  .gate = setting.option("spawn") == 2};
  std::vector<std::string> names = {"energy_hidden", "displacement_hidden"};
  if (heads.gate) names.insert(names.end(), {"gate_hidden", "child"});
  std::vector<at::Tensor> weights, biases;
  for (const auto& name : names) weights.push_back(inputs[name + "_weight"]), biases.push_back(inputs[name + "_bias"]);
  heads.first = at::cat(weights).t().contiguous();
  heads.first_bias = at::cat(biases);
  heads.energy_out = inputs["energy_out_weight"].reshape({-1}).clone();
  heads.displacement_out = inputs["displacement_out_weight"].t().contiguous();
  heads.gate_out = inputs["gate_out_weight"].reshape({-1}).clone();
  heads.out_bias = at::cat({inputs["energy_out_bias"], inputs["displacement_out_bias"], inputs["gate_out_bias"]});
  return heads;
}

}  // namespace

at::Tensor packed_neuron(const NamedTensors& inputs) {
  std::vector<at::Tensor> parts;
  const auto matrix = [&](const std::string& name) { parts.push_back(inputs[name].t().reshape({-1})); };
  const auto vector = [&](const std::string& name) { parts.push_back(inputs[name].reshape({-1})); };
  matrix("coordinate_weight"), vector("coordinate_bias");
  for (const std::string number : {"1", "2"}) {
    matrix("neuron_weight_" + number), vector("neuron_bias_" + number);
    vector("neuron_gain_" + number), vector("neuron_shift_" + number);
  }
  matrix("neuron_weight_3"), vector("neuron_bias_3");
  return at::cat(parts);
}

carrier_heads::Rule<float> heads_rule_of(const Setting& setting) {
  const bool gate = setting.option("spawn") == 2;
  return {.scale = static_cast<float>(exploration_scale(setting)),
          .noise = static_cast<float>(setting.option("noise")),
          .noise_on_z = setting.on("noise_on_z") ? 1.0f : 0.0f,
          .threshold = static_cast<float>(setting.option(gate ? "gate_threshold" : "movement_threshold")),
          .most = setting.option("spawn") > 0 ? static_cast<std::int32_t>(setting.option("most_spawned")) : 0,
          .gate = gate,
          .key = {.seed = static_cast<std::uint64_t>(setting.option("seed")),
                  .attempt = static_cast<std::uint32_t>(setting.option("attempt"))}};
}

Parameters::Parameters(const NamedTensors& inputs, const Setting& setting)
    : neuron_layout{static_cast<int>(setting.size("neuron_width")), static_cast<int>(setting.size("features"))},
      neuron(packed_neuron(inputs)),
      heads(packed_heads(inputs, setting)),
      heads_rule(heads_rule_of(setting)),
      movement{.kill = setting.on("boundary"),
               .drop = setting.on("on_stop"),
               .projection_age = static_cast<std::int32_t>(setting.option("projection_age"))} {
  for (std::int64_t l = 0; l < setting.size("layers"); ++l)
    layers.push_back(packed_layer(inputs, std::to_string(l), setting.size("hidden")));
}

}  // namespace twinbench::energy_flow::flow_forward
