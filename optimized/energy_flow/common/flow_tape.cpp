// Blocks of memory that hold a fixed number of tiles' steps each.
#include "optimized/energy_flow/common/flow_tape.h"

#include <ATen/ops/empty.h>

#include "optimized/common/tensors.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

constexpr std::size_t kTilesPerBlock = 8;

}  // namespace

FlowTape::FlowTape(const TileNetworks& networks, std::int64_t states, Keeps keeps)
    : state_((4 + states) * kLanes),
      gates_(keeps == Keeps::kEverything ? networks.kept_gates() : 0),
      heads_(keeps == Keeps::kEverything ? networks.kept_heads() : 0),
      size_(state_ + (keeps == Keeps::kStart ? 1 : 3) * kLanes + gates_ + heads_) {}

void FlowTape::clear() { steps_.clear(), tiles_.clear(); }

void FlowTape::begin_step(std::int32_t created) { steps_.push_back({tiles_.size(), tiles_.size(), created}); }

float* FlowTape::take() {
  const std::size_t block = tiles_.size() / kTilesPerBlock, within = tiles_.size() % kTilesPerBlock;
  if (block == blocks_.size())
    blocks_.push_back(at::empty({static_cast<std::int64_t>(kTilesPerBlock) * size_}, at::kFloat));
  return data<float>(blocks_[block]) + static_cast<std::int64_t>(within) * size_;
}

const TileStep& FlowTape::add(std::int64_t tile, std::uint32_t active) {
  float* const state = take();
  float* const replayed = state + state_;
  TileKept kept;
  if (gates_ > 0) kept = {.gates = replayed + 3 * kLanes, .heads = replayed + 3 * kLanes + gates_};
  tiles_.push_back({.tile = tile, .active = active, .state = state, .replayed = replayed, .kept = kept});
  ++steps_.back().last;
  return tiles_.back();
}

std::int64_t FlowTape::bytes() const { return static_cast<std::int64_t>(tiles_.size()) * size_ * 4; }

std::int64_t FlowTape::bytes_for(std::int64_t tiles) const {
  constexpr auto kBlock = static_cast<std::int64_t>(kTilesPerBlock);
  return (tiles + kBlock - 1) / kBlock * kBlock * size_ * 4;
}

}  // namespace twinbench::energy_flow::flow_forward
