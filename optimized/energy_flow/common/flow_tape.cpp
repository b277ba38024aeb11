// A tensor for each tile's step.
#include "optimized/energy_flow/common/flow_tape.h"

#include <ATen/ops/empty.h>

#include "optimized/common/tensors.h"

namespace twinbench::energy_flow::flow_forward {

FlowTape::FlowTape(const TileNetworks& networks, std::int64_t states, Keeps keeps)
    : states_(StateField::tile_bytes(states, networks.stores_bf16()) / 4),
      gates_(keeps == Keeps::kEverything ? networks.kept_gates() : 0),
      heads_(keeps == Keeps::kEverything ? networks.kept_heads() : 0),
      size_(4 * kLanes + states_ + (keeps == Keeps::kStart ? 1 : 3) * kLanes + gates_ + heads_) {}

void FlowTape::clear() { steps_.clear(), tiles_.clear(); }

void FlowTape::begin_step(std::int32_t created) { steps_.push_back({tiles_.size(), tiles_.size(), created}); }

float* FlowTape::take() {
  if (tiles_.size() == memory_.size()) memory_.push_back(at::empty({size_}, at::kFloat));
  return data<float>(memory_[tiles_.size()]);
}

const TileStep& FlowTape::add(std::int64_t tile, std::uint32_t active) {
  float* const state = take();
  float* const hidden = state + 4 * kLanes;
  float* const replayed = hidden + states_;
  TileKept kept;
  if (gates_ > 0) kept = {.gates = replayed + 3 * kLanes, .heads = replayed + 3 * kLanes + gates_};
  tiles_.push_back({.tile = tile,
                    .active = active,
                    .state = state,
                    .hidden = reinterpret_cast<std::byte*>(hidden),
                    .replayed = replayed,
                    .kept = kept});
  ++steps_.back().last;
  return tiles_.back();
}

std::int64_t FlowTape::bytes() const { return bytes_for(static_cast<std::int64_t>(tiles_.size())); }

}  // namespace twinbench::energy_flow::flow_forward
