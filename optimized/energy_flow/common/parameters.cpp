// Packing of the networks' parameters, and the rules of a setting.
#include "optimized/energy_flow/common/parameters.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "optimized/common/packing.h"
#include "optimized/energy_flow/common/layer_parts.h"
#include "optimized/energy_flow/common/rules_of.h"

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
  const std::int64_t pairs = (hidden + 1) / 2;
  const at::Tensor biases = at::constant_pad_nd(
      gate_biases(inputs["bias_input_" + number], inputs["bias_hidden_" + number]), {0, 2 * pairs - hidden});
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
  const auto operand = [&](const std::string& name) { return operand_of(inputs[name], setting); };
  for (const auto& name : names) weights.push_back(operand(name + "_weight")), biases.push_back(inputs[name + "_bias"]);
  heads.first = at::cat(weights).t().contiguous();
  heads.first_bias = at::cat(biases);
  heads.energy_out = operand("energy_out_weight").reshape({-1}).clone();
  heads.displacement_out = operand("displacement_out_weight").t().contiguous();
  heads.gate_out = operand("gate_out_weight").reshape({-1}).clone();
  heads.out_bias = second_biases(inputs);
  return heads;
}

}  // namespace

at::Tensor packed_neuron(const NamedTensors& inputs, const Setting& setting) {
  std::vector<at::Tensor> parts;
  const auto matrix = [&](const std::string& name) {
    parts.push_back(operand_of(inputs[name], setting).t().reshape({-1}));
  };
  const auto vector = [&](const std::string& name) { parts.push_back(inputs[name].reshape({-1})); };
  matrix("coordinate_weight"), vector("coordinate_bias");
  for (const std::string number : {"1", "2"}) {
    matrix("neuron_weight_" + number), vector("neuron_bias_" + number);
    vector("neuron_gain_" + number), vector("neuron_shift_" + number);
  }
  matrix("neuron_weight_3"), vector("neuron_bias_3");
  return at::cat(parts);
}

void unpack_neuron(const at::Tensor& gradients, const simple_neuron::Layout& layout, const NamedTensors& results) {
  const auto set = [&](const std::string& name, const at::Tensor& value) { results["grad_" + name].copy_(value); };
  const auto matrix = [&](int from, std::int64_t inner, std::int64_t outer) {
    return gradients.narrow(0, from, inner * outer).view({inner, outer}).t();
  };
  set("coordinate_weight", matrix(layout.coordinate_weight(), 3, 3));
  set("coordinate_bias", gradients.narrow(0, layout.coordinate_bias(), 3));
  for (int l = 0; l < 2; ++l) {
    const std::string number = std::to_string(l + 1);
    set("neuron_weight_" + number, matrix(layout.weight(l), layout.inner(l), layout.hidden));
    set("neuron_bias_" + number, gradients.narrow(0, layout.bias(l), layout.hidden));
    set("neuron_gain_" + number, gradients.narrow(0, layout.gain(l), layout.hidden));
    set("neuron_shift_" + number, gradients.narrow(0, layout.shift(l), layout.hidden));
  }
  set("neuron_weight_3", matrix(layout.weight_out(), layout.hidden, layout.outputs));
  set("neuron_bias_3", gradients.narrow(0, layout.bias_out(), layout.outputs));
}

carrier_heads::Rule<float> heads_rule_of(const Setting& setting) {
  carrier_heads::Rule<float> rule = heads_rule<float>(setting, setting.option("spawn") == 2);
  if (setting.option("spawn") == 0) rule.most = 0;
  return rule;
}

Parameters::Parameters(const NamedTensors& inputs, const Setting& setting)
    : neuron_layout{static_cast<int>(setting.size("neuron_width")), static_cast<int>(setting.size("features"))},
      neuron(packed_neuron(inputs, setting)),
      heads(packed_heads(inputs, setting)),
      heads_rule(heads_rule_of(setting)) {
  for (std::int64_t l = 0; l < setting.size("layers"); ++l)
    layers.push_back(packed_layer(inputs, std::to_string(l), setting.size("hidden")));
}

std::vector<at::Tensor> Parameters::packs() const {
  std::vector<at::Tensor> all = {
      neuron, heads.first, heads.first_bias, heads.energy_out, heads.displacement_out, heads.gate_out, heads.out_bias};
  for (const RecurrentPack& layer : layers) all.insert(all.end(), {layer.weights, layer.biases});
  return all;
}

}  // namespace twinbench::energy_flow::flow_forward
