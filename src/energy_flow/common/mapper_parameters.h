// The frozen mapper's parameters (C04), as the specifications of passes that map embeddings list them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "src/energy_flow/common/flow_networks.h"

namespace twinbench::energy_flow {

inline InputSpec fixed_parameter(InputSpec input) { return input.without_gradient(); }

inline void add_mapper(Signature& s) {
  const std::string widths[] = {"embedding", "mapper_inner", "mapper_middle", "cells"};
  for (std::uint32_t layer = 1; layer <= 3; ++layer) {
    const std::string in = widths[layer - 1], out = widths[layer], number = std::to_string(layer);
    s.inputs.push_back(fixed_parameter(weight("mapper_weight_" + number, out + ", " + in, fan_in(32 + 4 * layer, in))));
    s.inputs.push_back(fixed_parameter(bias("mapper_bias_" + number, out, fan_in(33 + 4 * layer, in))));
    if (layer == 3) break;
    s.inputs.push_back(fixed_parameter(gain("mapper_gain_" + number, out, normal(34 + 4 * layer, 0.1)).shifted(1)));
    s.inputs.push_back(fixed_parameter(bias("mapper_shift_" + number, out, normal(35 + 4 * layer, 0.1))));
  }
  s.inputs.push_back(fixed_parameter(gain("mapper_scale", "1", normal(46, 0.1)).shifted(1)));
  s.inputs.push_back(fixed_parameter(bias("mapper_offset", "1", normal(47, 0.1))));
  s.inputs.push_back(fixed_parameter(bias("mapper_cell_offset", "height, width", normal(48, 0.02))));
}

// The worked example's (0.7).
inline void use_toy_mapper(const NamedTensors& inputs) {
  for (std::int64_t layer = 1; layer <= 3; ++layer) {
    const std::string number = std::to_string(layer);
    use_toy(inputs["mapper_weight_" + number], layer), use_toy(inputs["mapper_bias_" + number], layer);
  }
  for (const char* one : {"mapper_gain_1", "mapper_gain_2", "mapper_scale"}) inputs[one].fill_(1);
  for (const char* none : {"mapper_shift_1", "mapper_shift_2", "mapper_offset"}) inputs[none].zero_();
  const at::Tensor& cell = inputs["mapper_cell_offset"];
  cell.copy_(at::arange(cell.numel(), at::kFloat).sub(1.5).mul(0.01).view(cell.sizes()));
}

}  // namespace twinbench::energy_flow
