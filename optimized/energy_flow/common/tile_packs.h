// Weights as the products' tiles take them: [tiles][inner][96], of a recurrent layer the three gates of 32 channels.
// Rows and columns beyond the last one are zeros, so that no product asks whether they are there.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "kernels/energy_flow/common/flow_slots.h"
#include "optimized/energy_flow/common/layer_parts.h"
#include "src/named_tensors.h"

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
  const at::Tensor sums = gate_biases(inputs["bias_input" + number], inputs["bias_hidden" + number]);
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

}  // namespace twinbench::energy_flow::flow_forward
