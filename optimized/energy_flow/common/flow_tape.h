// The tape of one sample's flows: of every step, or of those that begin a segment, the tiles with a live flow, each
// with its state and what was decided, or with everything that the backward pass reads. Its memory grows in the first
// run and is used again after it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "optimized/energy_flow/common/sample_flows.h"

namespace twinbench::energy_flow::flow_forward {

class FlowTape {
 public:
  // What is kept of a tile: its state and its flows' ages; its state and what was decided; gates and heads' sums too.
  enum class Keeps { kStart, kState, kEverything };
  FlowTape(const TileNetworks& networks, std::int64_t states, Keeps keeps);

  struct Step {
    std::size_t first, last;  // of the tiles below
    std::int32_t created;     // flows that there were before the step
  };

  void clear();
  void begin_step(std::int32_t created);
  const TileStep& add(std::int64_t tile, std::uint32_t active);  // to the last step

  const std::vector<Step>& steps() const { return steps_; }
  const TileStep& operator[](std::size_t tile) const { return tiles_[tile]; }
  std::int64_t bytes() const;  // in use
  std::int64_t bytes_for(std::int64_t tiles) const { return tiles * size_ * 4; }

 private:
  float* take();

  const std::int64_t states_, gates_, heads_, size_;  // floats of one tile's step; states_: what they take, in floats
  std::vector<Step> steps_;
  std::vector<TileStep> tiles_;
  std::vector<at::Tensor> memory_;
};

}  // namespace twinbench::energy_flow::flow_forward
