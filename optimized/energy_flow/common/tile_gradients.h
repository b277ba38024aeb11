// A tile of flows back through heads, recurrent layers and neuron, in cache. What the networks had computed on the way
// is computed again from the tile's state, or read where everything was kept; the neuron is always computed again.
//
// Sums of the parameters' gradients are added tile by tile, in the order in which the caller takes the tiles.
#pragma once

#include "optimized/energy_flow/common/sample_flows.h"

namespace twinbench::energy_flow::flow_forward {

// Of a tile's flows: what the loss says of their state after a step, in place what it says of that before it.
struct TileAdjoint {
  float *position, *energy, *hidden;  // [3][kLanes], [kLanes], [layers * width][kLanes]
  const float*
      born;  // [4][kLanes], of the children born in this step: of their position, and of the child head's energy
};

// Where one set of sums lies in an array: matrices as the parameters are but the hidden weights, whose blocks are
// candidate, reset, update; vectors as [channels][kLanes] sums.
struct GradientLayout {
  GradientLayout(const Parameters& parameters);

  struct Layer {
    std::int64_t input, hidden, bias;  // bias: [4 * width][kLanes], hidden candidate, reset, update, candidate
  };
  std::int64_t neuron, neuron_lanes;
  std::vector<Layer> layers;
  std::int64_t first, first_bias;  // [trained][hidden], [trained][kLanes]: energy, displacement, child
  std::int64_t energy_out, displacement_out, out_bias;  // [energy], [3][head], [4][kLanes]
  std::int64_t size;
};

class TileGradients {
 public:
  TileGradients(const NamedTensors& inputs, const Setting& setting, const TileNetworks& networks);

  const GradientLayout& layout() const { return layout_; }
  std::vector<at::Tensor> packs() const;  // of the parameters, beside the networks' own
  std::int64_t scratch_size() const;

  // Lanes that are not active keep their adjoint.
  void walk_back(const TileStep& step, const TileAdjoint& adjoint, float* scratch, float* sums) const;
  // Lane sums of the neuron's vectors into its packed array, once all tiles are through.
  void finish(float* sums) const;

 private:
  struct Layer {
    at::Tensor input, hidden;  // [3 * width, in]; [3 * width, width] in the blocks' order above
  };
  struct Scratch;

  const TileNetworks& networks_;
  const Parameters& parameters_;
  const GradientLayout layout_;
  const std::int64_t width_, features_, trained_;
  const bool round_;  // operands of neuron and heads
  std::vector<Layer> layers_;
  at::Tensor first_;  // [trained, hidden]
};

}  // namespace twinbench::energy_flow::flow_forward
