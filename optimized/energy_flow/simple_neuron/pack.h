// Checks and packs the simple neuron's weights for the CPU and CUDA paths, once, in their constructors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>

#include <string>
#include <vector>

#include "kernels/energy_flow/simple_neuron/math.h"
#include "src/tensor_checks.h"

namespace twinbench::energy_flow::simple_neuron {

struct PackedSimpleNeuron {
  SimpleNeuronLayout layout;
  bool round = false, backward = false;
  std::int64_t flows = 0;
  at::Tensor weights;  // [layout.total()], on the inputs' device; matrices [in, out], rounded to bf16 in that mode
};

// Throws kBadShape or kBadDtype unless every input has the shape that "position", "weight_1" and "weight_3" imply.
inline PackedSimpleNeuron pack_simple_neuron(const NamedTensors& inputs, const Setting& setting) {
  PackedSimpleNeuron packed;
  packed.round = setting.dtype == Dtype::kBf16;
  packed.backward = setting.input_case.pass == Pass::kBackward;
  const at::ScalarType dtype = floating_type(setting.dtype);
  const auto require = [&](const std::string& name, at::IntArrayRef shape) { expect_tensor(inputs, name, shape, dtype); };
  for (const char* name : {"position", "weight_1", "weight_3"}) expect_rank(inputs, name, 2);
  packed.flows = inputs["position"].size(0);
  const std::int64_t hidden = inputs["weight_1"].size(0), outputs = inputs["weight_3"].size(0);
  packed.layout = {static_cast<int>(hidden), static_cast<int>(outputs)};
  require("position", {packed.flows, 3});
  require("energy", {packed.flows, 1});
  require("coordinate_weight", {3, 3});
  require("coordinate_bias", {3});
  require("weight_1", {hidden, 4});
  require("weight_2", {hidden, hidden});
  require("weight_3", {outputs, hidden});
  require("bias_3", {outputs});
  for (const char* name : {"bias_1", "gain_1", "shift_1", "bias_2", "gain_2", "shift_2"})
    require(name, {hidden});
  if (packed.backward) require("grad_features", {packed.flows, outputs});

  const auto matrix = [&](const char* name) {
    const at::Tensor& weight = inputs[name];
    return (packed.round ? weight.to(at::kBFloat16).to(at::kFloat) : weight).t().reshape({-1});
  };
  std::vector<at::Tensor> parts{matrix("coordinate_weight"), inputs["coordinate_bias"]};
  for (const std::string layer : {"1", "2"}) {
    parts.push_back(matrix(("weight_" + layer).c_str()));
    for (const char* part : {"bias_", "gain_", "shift_"}) parts.push_back(inputs[part + layer]);
  }
  parts.push_back(matrix("weight_3"));
  parts.push_back(inputs["bias_3"]);
  packed.weights = at::cat(parts);
  return packed;
}

// Adds grad_<weight> for every weight to `results`, as contiguous tensors of the weights' shapes, from packed gradients.
inline void unpack_simple_neuron_gradients(const at::Tensor& packed, const SimpleNeuronLayout& at,
                                           NamedTensors& results) {
  const auto vector = [&](const char* name, int offset, int length) {
    results.set(name, packed.narrow(0, offset, length).clone());
  };
  const auto matrix = [&](const char* name, int offset, int in, int out) {
    results.set(name, packed.narrow(0, offset, in * out).view({in, out}).t().contiguous());
  };
  matrix("grad_coordinate_weight", at.coordinate_weight(), 3, 3);
  vector("grad_coordinate_bias", at.coordinate_bias(), 3);
  matrix("grad_weight_1", at.weight_1(), 4, at.hidden);
  vector("grad_bias_1", at.bias_1(), at.hidden);
  vector("grad_gain_1", at.gain_1(), at.hidden);
  vector("grad_shift_1", at.shift_1(), at.hidden);
  matrix("grad_weight_2", at.weight_2(), at.hidden, at.hidden);
  vector("grad_bias_2", at.bias_2(), at.hidden);
  vector("grad_gain_2", at.gain_2(), at.hidden);
  vector("grad_shift_2", at.shift_2(), at.hidden);
  matrix("grad_weight_3", at.weight_3(), at.hidden, at.outputs);
  vector("grad_bias_3", at.bias_3(), at.outputs);
}

}  // namespace twinbench::energy_flow::simple_neuron
