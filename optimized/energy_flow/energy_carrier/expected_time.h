// Which form of the carrier's forward layers is expected to be the fastest, where nothing can be measured: seconds of a
// card in closed form. Only their order matters; `twinbench kernels` holds it against the modelled times of every form.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "kernels/common/grid.h"
#include "kernels/energy_flow/energy_carrier/arguments.h"

namespace twinbench::energy_flow::energy_carrier {

inline std::string form_name(std::optional<FusedTile> tile) {
  if (!tile) return "library products";
  return "fused tiles of " + std::to_string(flows_of(*tile)) + "x" + std::to_string(channels_of(*tile));
}

// Rounded figures of an H200 (ci/cards/h200.json), as its model needs them.
struct ExpectedCard {
  double multiprocessors = 132, launch = 0.75e-6, memory = 4e12;  // s, B/s
  double tensor_cores = 646e12, products = 780e12;                // FLOP/s: of the fused kernel, of the library
  double slice = 80e-9, block = 1.5e-6;                           // s: of a slice of k at least, of a block's ends
};

inline double expected_seconds(const Shape& shape, std::optional<FusedTile> tile, const ExpectedCard& card = {}) {
  const auto flows = static_cast<double>(shape.flows), width = static_cast<double>(shape.width);
  // The guard's pass reads states in fp32 and writes them in bf16; fused layers do so for those above the first.
  const double guarded = 6 * width * flows * (tile ? 1 : shape.layers);
  double seconds = card.launch + guarded / card.memory;
  for (std::int32_t l = 0; l < shape.layers; ++l) {
    const double input = l == 0 ? input_width(shape) : width;
    if (!tile) {
      // Two products that write their sums, one kernel that reads them; a product is no shorter than a small kernel.
      const double product = 2 * flows * 3 * width / card.products, sums = 2 * 4 * 3 * width * flows / card.memory;
      seconds += 3 * card.launch + std::max(1e-6, product * input + sums / 2) +
                 std::max(1e-6, product * width + sums / 2) + std::max(0.5e-6, sums);
      continue;
    }
    const std::int64_t flow_tiles = kernels::blocks_of(shape.flows, flows_of(*tile));
    const std::int64_t channel_tiles = kernels::blocks_of(shape.width, channels_of(*tile));
    const double rounds = std::ceil(static_cast<double>(flow_tiles * channel_tiles) / card.multiprocessors);
    const double tile_flops = 2.0 * static_cast<double>(flows_of(*tile)) * 3 * static_cast<double>(channels_of(*tile));
    const double multiplying = tile_flops * (input + width) / (card.tensor_cores / card.multiprocessors);
    seconds += card.launch + rounds * (card.block + std::max(multiplying, (input + width) / 32 * card.slice));
  }
  return seconds;
}

}  // namespace twinbench::energy_flow::energy_carrier
