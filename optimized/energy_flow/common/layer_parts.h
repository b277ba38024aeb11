// Parameters of recurrent layers and heads side by side, as products and kernels take them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "kernels/energy_flow/common/head_columns.h"
#include "src/named_tensors.h"

namespace twinbench::energy_flow {

// Of a recurrent layer, [4, width]: reset and update with both biases added, then the candidate's two.
inline at::Tensor gate_biases(const at::Tensor& of_input, const at::Tensor& of_state) {
  const std::int64_t width = of_input.size(0) / 3;
  return at::cat({of_input.narrow(0, 0, 2 * width) + of_state.narrow(0, 0, 2 * width),
                  of_input.narrow(0, 2 * width, width), of_state.narrow(0, 2 * width, width)})
      .view({4, width});
}

// [energy 1 | displacement 3 | gate 1]
inline at::Tensor second_biases(const NamedTensors& inputs) {
  return at::cat({inputs["energy_out_bias"], inputs["displacement_out_bias"], inputs["gate_out_bias"]});
}

// The heads' first layers in one matrix, as carrier_heads::Columns has them, zeros in the padding, which makes a row's
// length a multiple of `alignment`.
struct FirstLayers {
  at::Tensor weight, bias;  // [all, hidden], [all]
  carrier_heads::Columns columns;
};

inline FirstLayers first_layers(const NamedTensors& inputs, bool gate, std::int64_t alignment) {
  const at::Tensor &energy = inputs["energy_hidden_weight"], &displacement = inputs["displacement_hidden_weight"];
  std::vector<at::Tensor> weights = {energy, displacement};
  std::vector<at::Tensor> biases = {inputs["energy_hidden_bias"], inputs["displacement_hidden_bias"]};
  if (gate) {
    constexpr std::int64_t kUnused = carrier_heads::Columns::kChildColumns - 1;
    const at::Tensor no_bias = at::zeros({kUnused}, energy.options());
    weights.insert(weights.end(), {inputs["child_weight"], at::zeros({kUnused, energy.size(1)}, energy.options()),
                                   inputs["gate_hidden_weight"]});
    biases.insert(biases.end(), {inputs["child_bias"], no_bias, inputs["gate_hidden_bias"]});
  }
  const at::Tensor joined = at::cat(weights);
  const std::int64_t padding = (alignment - joined.size(0) % alignment) % alignment;
  return {at::constant_pad_nd(joined, {0, 0, 0, padding}),
          at::constant_pad_nd(at::cat(biases), {0, padding}).contiguous(),
          {.energy_width = static_cast<std::int32_t>(energy.size(0)),
           .head_width = static_cast<std::int32_t>(displacement.size(0)),
           .all = static_cast<std::int32_t>(joined.size(0) + padding)}};
}

}  // namespace twinbench::energy_flow
