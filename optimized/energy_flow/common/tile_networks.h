// A tile of flows through neuron, recurrent layers and heads, in cache.
//
// A tile holds kLanes flows; what belongs to it is [channels][kLanes], so that a loop over lanes is one vector
// instruction. A lane never touches another one: a flow's results are the same bits in any tile and at any place of it.
#pragma once

#include "optimized/energy_flow/common/parameters.h"

namespace twinbench::energy_flow::flow_forward {

constexpr int kLanes = 16;  // one AVX-512 register, two AVX2 registers

// Sums of the heads' second layers, [kLanes] each, biases included; gate and child in gate mode only.
struct TileIntent {
  float energy[kLanes], displacement[3 * kLanes], gate[kLanes], child[kLanes];
};

class TileNetworks {
 public:
  TileNetworks(const NamedTensors& inputs, const Setting& setting);

  std::int64_t scratch_size() const;  // floats that one tile needs on its way

  // position [3][kLanes], energy [kLanes]; hidden [layers][width][kLanes] is advanced.
  void advance(const float* position, const float* energy, float* hidden, float* scratch, TileIntent& intent) const;

  const Parameters& parameters() const { return parameters_; }

 private:
  const Parameters parameters_;
  const std::int64_t width_, features_;
};

}  // namespace twinbench::energy_flow::flow_forward
