// Weights as the products' tiles take them: [tiles][inner][96], of a recurrent layer the three gates of 32 channels.
// Rows and columns beyond the last one are zeros, so that no product asks whether they are there.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "kernels/energy_flow/common/head_columns.h"
#include "kernels/energy_flow/flow_forward/math.h"
#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

struct TilePack {
  at::Tensor weights, biases;  // [tiles, inner, 96], [tiles, 4, 32]
};

// matrix [parts * rows, inner]: rows of each part in tiles of `each`, [tiles, padded inner, parts * each].
inline at::Tensor in_tiles(const at::Tensor& matrix, std::int64_t parts, std::int64_t each) {
  const std::int64_t rows = matrix.size(0) / parts, inner = padded_width(static_cast<std::int32_t>(matrix.size(1)));
  const std::int64_t tiles = (rows + each - 1) / each;
  return at::constant_pad_nd(matrix.reshape({parts, rows, matrix.size(1)}),
                             {0, inner - matrix.size(1), 0, tiles * each - rows})
      .view({parts, tiles, each, inner})
      .permute({1, 3, 0, 2})
      .reshape({tiles, inner, parts * each});
}

inline TilePack recurrent_pack(const NamedTensors& inputs, std::int64_t layer, std::int64_t width) {
  const std::string number = "_" + std::to_string(layer);
  const at::Tensor of_input = inputs["bias_input" + number].reshape({3, width}),
                   of_state = inputs["bias_hidden" + number].reshape({3, width});
  const at::Tensor sums = at::cat(
      {of_input.narrow(0, 0, 2) + of_state.narrow(0, 0, 2), of_input.narrow(0, 2, 1), of_state.narrow(0, 2, 1)});
  const std::int64_t tiles = (width + kTileChannels - 1) / kTileChannels;
  return {at::cat({in_tiles(inputs["weight_input" + number], 3, kTileChannels),
                   in_tiles(inputs["weight_hidden" + number], 3, kTileChannels)},
                  1)
              .contiguous(),
          at::constant_pad_nd(sums, {0, tiles * kTileChannels - width})
              .view({4, tiles, kTileChannels})
              .transpose(0, 1)
              .contiguous()};
}

// The heads' first layers side by side, as carrier_heads::Columns has them.
struct FirstLayers {
  at::Tensor weights, bias;  // [tiles, inner, 96], [all]
  carrier_heads::Columns columns;
};

inline FirstLayers first_layers(const NamedTensors& inputs, const Setting& setting) {
  constexpr std::int64_t kAlignment = 8;  // columns: rows of whole sectors of 32 bytes
  std::vector<at::Tensor> weights = {inputs["energy_hidden_weight"], inputs["displacement_hidden_weight"]};
  std::vector<at::Tensor> biases = {inputs["energy_hidden_bias"], inputs["displacement_hidden_bias"]};
  if (setting.option("spawn") == 2) {
    constexpr std::int64_t kUnused = carrier_heads::Columns::kChildColumns - 1;
    const at::Tensor none = at::zeros({kUnused, setting.size("hidden")}, weights[0].options());
    weights.insert(weights.end(), {inputs["child_weight"], none, inputs["gate_hidden_weight"]});
    biases.insert(biases.end(), {inputs["child_bias"], none.select(1, 0), inputs["gate_hidden_bias"]});
  }
  const at::Tensor joined = at::cat(weights), bias = at::cat(biases);
  const std::int64_t padding = (kAlignment - joined.size(0) % kAlignment) % kAlignment;
  return {in_tiles(at::constant_pad_nd(joined, {0, 0, 0, padding}), 1, kTileColumns).contiguous(),
          at::constant_pad_nd(bias, {0, padding}).contiguous(),
          {.energy_width = static_cast<std::int32_t>(setting.size("energy_width")),
           .head_width = static_cast<std::int32_t>(setting.size("head_width")),
           .all = static_cast<std::int32_t>(joined.size(0) + padding)}};
}

}  // namespace twinbench::energy_flow::flow_forward
