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

// Rounded figures of a card (ci/cards), as its model needs them.
struct ExpectedCard {
  double multiprocessors, launch, memory;  // s, B/s
  double tensor_cores, products;           // FLOP/s: of the fused kernel, of the library
  double slice, block;                     // s: of a slice of k at least, of a block's ends
};
constexpr ExpectedCard kExpectedCards[] = {{132, 0.75e-6, 4e12, 646e12, 780e12, 80e-9, 1.5e-6},    // H200
                                           {170, 0.6e-6, 1.5e12, 224e12, 224e12, 60e-9, 1.2e-6}};  // RTX 5090

inline double expected_seconds(const Shape& shape, std::optional<FusedTile> tile, const ExpectedCard& card) {
  const auto flows = static_cast<double>(shape.flows), width = static_cast<double>(shape.width);
  // The guard's pass reads states in fp32 and writes them in bf16; fused layers do so for those above the first.
  const double guarded = 6 * width * flows * (tile ? 1 : shape.layers);
  double seconds = card.launch + guarded / card.memory;
  for (std::int32_t l = 0; l < shape.layers; ++l) {
    const double input = l == 0 ? input_width(shape) : width;
    if (!tile) {
      // Two products that read their weights and write their sums, one kernel that reads them; a product is no shorter
      // than a small kernel.
      const double sums = 2 * 4 * 3 * width * flows / card.memory;
      const auto product = [&](double inner) {
        const double weights = 2 * 3 * width * inner;
        return std::max(1e-6, weights * flows / card.products + weights / card.memory + sums / 2);
      };
      seconds += 3 * card.launch + product(input) + product(width) + std::max(0.5e-6, sums);
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

// Over all cards: what simt counts is one form, which none of them may be much slower with (`twinbench kernels`).
inline double expected_seconds(const Shape& shape, std::optional<FusedTile> tile) {
  double seconds = 0;
  for (const ExpectedCard& card : kExpectedCards) seconds += expected_seconds(shape, tile, card);
  return seconds;
}

}  // namespace twinbench::energy_flow::energy_carrier
