// What the steps of one sample decided, for where they are computed again: which flows took part in each and how many
// children each asked for. Its memory grows in the first run and is used again after it.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/energy_flow/common/flow_tape.h"

namespace twinbench::energy_flow::flow_forward {

// Of one tile in one step.
struct TileLife {
  std::int32_t tile = 0;
  std::uint32_t active = 0;             // a bit for every lane with a live flow
  std::uint16_t requests[kLanes] = {};  // children, before admission: 1,024 at most
};

struct StepDecisions {
  std::vector<FlowTape::Step> steps;  // of the tiles below
  std::vector<TileLife> tiles;

  void clear() { steps.clear(), tiles.clear(); }
  void begin_step(std::int32_t created) { steps.push_back({tiles.size(), tiles.size(), created}); }
  void add(std::int64_t tile, std::uint32_t active) {
    tiles.push_back({static_cast<std::int32_t>(tile), active});
    ++steps.back().last;
  }
  // What advance() decided of the last step's i-th tile, and the same for when it is computed again.
  void note(std::size_t i, const TileStep& step) {
    TileLife& tile = tiles[steps.back().first + i];
    for (int lane = 0; lane < kLanes; ++lane)
      tile.requests[lane] = static_cast<std::uint16_t>(step.replayed[2 * kLanes + lane] - 1);
  }
  void recall(std::size_t i, const TileStep& step) const {
    for (int lane = 0; lane < kLanes; ++lane)
      step.replayed[2 * kLanes + lane] = static_cast<float>(tiles[i].requests[lane] + 1);
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(tiles.size() * sizeof(TileLife)); }
};

}  // namespace twinbench::energy_flow::flow_forward
