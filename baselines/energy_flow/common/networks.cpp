// Mapper, neuron and heads of the whole forward, operator by operator.
#include "baselines/energy_flow/common/networks.h"

#include <ATen/ATen.h>

#include "baselines/common/layers.h"
#include "baselines/energy_flow/common/exploration.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

Linear layer(const NamedTensors& inputs, const std::string& prefix, Operands operands) {
  return {inputs[prefix + "_weight"], inputs[prefix + "_bias"], operands};
}
Linear numbered(const NamedTensors& inputs, const std::string& prefix, const std::string& number, Operands operands) {
  return {inputs[prefix + "_weight_" + number], inputs[prefix + "_bias_" + number], operands};
}
Norm norm(const NamedTensors& inputs, const std::string& prefix, const std::string& number) {
  return {inputs[prefix + "_gain_" + number], inputs[prefix + "_shift_" + number]};
}

}  // namespace

at::Tensor Linear::operator()(const at::Tensor& x) const {
  if (operands == Operands::kRoundedOfLibrary && x.is_cuda()) return at::add(library_product(x, weight, true), bias);
  return baseline_linear(x, weight, bias, operands != Operands::kAsTheyAre);
}
at::Tensor Norm::operator()(const at::Tensor& x) const { return at::layer_norm(x, {x.size(1)}, gain, shift, 1e-5); }

at::Tensor guarded(const at::Tensor& values) { return at::clamp(at::nan_to_num(values, 0.0), -10.0, 10.0); }

Mapper::Mapper(const NamedTensors& inputs, Operands operands)
    : first_(numbered(inputs, "mapper", "1", operands)),
      second_(numbered(inputs, "mapper", "2", operands)),
      last_(numbered(inputs, "mapper", "3", operands)),
      first_norm_(norm(inputs, "mapper", "1")),
      second_norm_(norm(inputs, "mapper", "2")),
      scale_(inputs["mapper_scale"]),
      offset_(inputs["mapper_offset"]),
      cell_offset_(inputs["mapper_cell_offset"].reshape({1, -1})) {}

at::Tensor Mapper::operator()(const at::Tensor& embedding) const {
  const at::Tensor first = first_norm_(at::gelu(first_(embedding)));
  const at::Tensor second = second_norm_(at::gelu(second_(first)));
  return at::add(at::addcmul(offset_, at::tanh(last_(second)), scale_), cell_offset_);
}

Neuron::Neuron(const NamedTensors& inputs, Operands operands)
    : coordinates_(layer(inputs, "coordinate", operands)),
      first_(numbered(inputs, "neuron", "1", operands)),
      second_(numbered(inputs, "neuron", "2", operands)),
      last_(numbered(inputs, "neuron", "3", operands)),
      first_norm_(norm(inputs, "neuron", "1")),
      second_norm_(norm(inputs, "neuron", "2")) {}

at::Tensor Neuron::operator()(const at::Tensor& position, const at::Tensor& energy) const {
  const at::Tensor state = at::cat({coordinates_(position), energy}, 1);
  const at::Tensor first = at::gelu(first_norm_(first_(state)));
  return last_(at::gelu(second_norm_(second_(first))));
}

std::vector<RecurrentLayer> RecurrentLayer::all(const NamedTensors& inputs, std::int64_t layers) {
  std::vector<RecurrentLayer> all;
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::string number = "_" + std::to_string(l);
    all.push_back({{inputs["weight_input" + number], inputs["bias_input" + number]},
                   {inputs["weight_hidden" + number], inputs["bias_hidden" + number]}});
  }
  return all;
}

void keep_recurrent_weights(NamedTensors& inputs, const NamedTensors& given, std::int64_t layers) {
  for (std::int64_t l = 0; l < layers; ++l)
    for (const char* name : {"weight_input_", "weight_hidden_"})
      inputs.set(name + std::to_string(l), given[name + std::to_string(l)]);
}

Heads::Heads(const NamedTensors& inputs, const Setting& setting, Operands operands)
    : scale_(scheduled_scale(setting)),
      gate_(setting.option("spawn") == 2),
      energy_hidden_(layer(inputs, "energy_hidden", operands)),
      energy_out_(layer(inputs, "energy_out", operands)),
      displacement_hidden_(layer(inputs, "displacement_hidden", operands)),
      displacement_out_(layer(inputs, "displacement_out", operands)),
      gate_hidden_(layer(inputs, "gate_hidden", operands)),
      gate_out_(layer(inputs, "gate_out", operands)),
      child_(layer(inputs, "child", operands)) {}

Intent Heads::operator()(const at::Tensor& carried) const {
  Intent intent;
  intent.energy = at::nan_to_num(at::tanh(energy_out_(at::gelu(energy_hidden_(carried)))), 0.0);
  intent.delta = at::clamp(at::mul(displacement_out_(at::gelu(displacement_hidden_(carried))), scale_), -0.5, 0.5);
  if (!gate_) return intent;
  intent.gate = at::sigmoid(gate_out_(at::gelu(gate_hidden_(carried))));
  intent.child = at::tanh(child_(carried));
  return intent;
}

}  // namespace twinbench::energy_flow::flow_forward
