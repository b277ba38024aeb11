// One sample's flows from placement to the surface. Live flows lie in tiles, in the order of their numbers; what has
// ended leaves its place and waits in a list for the collection. All memory is made by the constructor.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/energy_flow/common/collection.h"
#include "optimized/energy_flow/common/flow_records.h"
#include "optimized/energy_flow/common/rules.h"
#include "optimized/energy_flow/common/state_field.h"
#include "optimized/energy_flow/common/tile_networks.h"

namespace twinbench::energy_flow::flow_forward {

// What the backward pass needs of one tile's step; whoever gives it to SampleFlows::advance() owns its memory.
struct TileStep {
  std::int64_t tile = 0;
  std::uint32_t active = 0;     // a bit for every lane with a live flow
  float* state = nullptr;       // [4][kLanes] before the step: position, energy
  std::byte* hidden = nullptr;  // [layers * width][kLanes] likewise, as the flows store it
  float* replayed = nullptr;    // [3][kLanes], as decided: slopes of the reflection in x and y, children and one
  TileKept kept = {};           // where everything is kept
};

class SampleFlows {
 public:
  SampleFlows(const Rules& rules, const TileNetworks& networks, std::int64_t hidden_floats);

  // A flow for each admitted cell of a surface.
  void place(const float* surface);
  // The stop rule before step t; ends the live flows of a sample that stops.
  void look(std::int32_t t);
  bool finished() const { return stop_.finished(); }
  std::int32_t active() const { return active_; }

  std::int64_t tiles() const { return (span_ + kLanes - 1) / kLanes; }
  // Bits of the tile's lanes with a live flow.
  std::uint32_t live_lanes(std::int64_t tile) const;
  // One tile's part of step t; tiles are independent of one another.
  void advance(std::int64_t tile, std::int32_t t, std::uint32_t sample_key, float* scratch,
               const TileStep* step = nullptr);
  // What the step has decided: flows that end, children, places.
  void settle(std::int32_t t);

  // Steps computed again: from what a tile was before the first of them (step.replayed: its flows' ages), by advance()
  // of the flows that took part in each, and with the children that were admitted after it.
  void keep_start(const TileStep& step) const;
  void take_start(const TileStep& step);
  void set_live(std::int64_t tile, std::uint32_t active);
  void bear_again(std::int64_t child) { bear(parent_[static_cast<std::size_t>(child)], child); }

  void collect(float* surface);
  // In place of collect(): the gradients of the energies of the flows that were collected, at their numbers.
  void uncollect(const float* grad_surface, float* grad_energy);
  std::int32_t created() const { return stats_[kCreated]; }
  std::int32_t parent(std::int64_t slot) const { return parent_[static_cast<std::size_t>(slot)]; }
  const std::array<std::int32_t, kStatistics>& stats() const { return stats_; }
  float margin() const { return margin_; }

  // What stands between two steps, given to others, whose records are zeros, and taken from them.
  void give(const FlowRecords& to) const;
  void take(const FlowRecords& from);

 private:
  // [tiles][channels][kLanes]: the value of a flow's channel.
  struct Field {
    at::Tensor values;
    float* start = nullptr;
    std::int64_t channels = 1;
    Field(std::int64_t tiles, std::int64_t channels);
    float* tile(std::int64_t t) const { return start + t * channels * kLanes; }
    float& at(std::int64_t slot, std::int64_t channel = 0) const {
      return tile(slot / kLanes)[channel * kLanes + slot % kLanes];
    }
    void move(std::int64_t from, std::int64_t to) const;
  };
  struct Ended {
    float x, y, energy, distance;
    std::int32_t age, cell;
    float weight;
    std::int32_t number;
  };

  void note(float margin) { margin_ = margin < margin_ ? margin : margin_; }
  void end(std::int64_t slot, const flow_movement::Flow<float>& flow);
  void admit(std::int64_t parent, std::int32_t count);
  void bear(std::int64_t parent, std::int64_t child);
  void compact();
  void keep_state(const TileStep& step) const;
  void keep_before(const TileStep& step) const;
  void keep_after(std::int64_t slot, const carrier_heads::Results<float>& to, const TileStep& step) const;
  void sum_cells();

  const Rules& rules_;
  const TileNetworks& networks_;
  Field position_, before_, energy_, child_energy_;
  const StateField hidden_;
  // By place; status: flow_movement::kActive or 0. What a step leaves for settle(): outcome, requests, distance, near.
  std::vector<std::int32_t> status_, age_, number_, parent_, outcome_, requests_;
  std::vector<float> distance_, near_;
  std::vector<Ended> ended_;
  std::vector<surface_collection::Cell> cells_;
  std::int64_t span_ = 0;  // places up to the last that was taken
  std::int32_t active_ = 0, ended_count_ = 0;
  StopState stop_;
  std::array<std::int32_t, kStatistics> stats_{};
  float margin_ = 1;
};

}  // namespace twinbench::energy_flow::flow_forward
