// Parameters in one packed array, in the order and by the roles of the setting's signature.
#pragma once

#include <ATen/ops/cat.h>

#include <vector>

#include "optimized/common/tensors.h"

namespace twinbench {

// A weight as the products take it, contiguous: in bf16 mode rounded, and held in `type`.
inline at::Tensor operand_of(const at::Tensor& weight, const Setting& setting, at::ScalarType type = at::kFloat) {
  return (rounds_operands(setting) ? weight.to(at::kBFloat16).to(type) : weight).contiguous();
}

inline std::vector<InputSpec> parameters_of(const Setting& setting) {
  std::vector<InputSpec> parameters = inputs_of(*setting.signature, setting);
  std::erase_if(parameters,
                [](const InputSpec& input) { return input.role == Role::kData || input.role == Role::kState; });
  return parameters;
}

// All parameters one after the other: weights as operands, transposed to [in][out]; biases and gains as they are.
inline at::Tensor pack_parameters(const NamedTensors& inputs, const Setting& setting) {
  std::vector<at::Tensor> parts;
  for (const InputSpec& parameter : parameters_of(setting)) {
    const at::Tensor& tensor = inputs[parameter.name];
    parts.push_back((parameter.role == Role::kWeight ? operand_of(tensor, setting).t() : tensor).reshape({-1}));
  }
  return at::cat(parts);
}

// Copies gradients in that layout into grad_<parameter> of the results.
inline void unpack_gradients(const at::Tensor& packed, const Setting& setting, const NamedTensors& results) {
  std::int64_t at = 0;
  for (const InputSpec& parameter : parameters_of(setting)) {
    at::Tensor gradient = results["grad_" + parameter.name];
    at::Tensor part = packed.narrow(0, at, gradient.numel());
    at += gradient.numel();
    part =
        parameter.role == Role::kWeight ? part.view({gradient.size(1), gradient.size(0)}).t() : part.view_as(gradient);
    gradient.copy_(part);
  }
}

}  // namespace twinbench
