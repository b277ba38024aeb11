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

// Of the networks' step what the backward pass reads, where it is to be kept.
struct TileKept {
  float* gates = nullptr;  // [layers][4][width][kLanes]: reset, update, candidate, the candidate's hidden part
  float* heads = nullptr;  // [rows][kLanes], sums of the heads' first layers

  bool is_kept() const { return gates != nullptr; }
};

class TileNetworks {
 public:
  TileNetworks(const NamedTensors& inputs, const Setting& setting);

  std::int64_t scratch_size() const;  // floats that one tile needs on its way
  std::int64_t kept_gates() const;    // floats of TileKept's two
  std::int64_t kept_heads() const;

  // position [3][kLanes], energy [kLanes]; hidden [layers][width][kLanes] is advanced.
  void advance(const float* position, const float* energy, float* hidden, float* scratch, TileIntent& intent,
               const TileKept& kept = {}) const;

  // The second half of advance(), from what its first has left in the scratch: the neuron's tile, and input(), which is
  // used up.
  void carry(float* hidden, float* scratch, TileIntent& intent, const TileKept& kept) const;
  float* input(float* scratch) const;  // [features + 1][kLanes]
  // Where hidden states of two bytes are opened for advance(); of no size where they are floats.
  float* opened_states(float* scratch) const { return scratch + scratch_size() - opened_size(); }
  bool stores_bf16() const { return stores_; }

  const Parameters& parameters() const { return parameters_; }
  // By the training step: the scale of displacements, the attempt in the noise's key.
  void set_exploration(float scale, std::uint32_t attempt) {
    parameters_.heads_rule.scale = scale;
    parameters_.heads_rule.key.attempt = attempt;
  }

 private:
  std::int64_t opened_size() const;

  Parameters parameters_;
  const std::int64_t width_, features_;
  const bool round_;   // operands of neuron and heads; the recurrent layers stay fp32 (0.3)
  const bool stores_;  // hidden states in bf16
};

}  // namespace twinbench::energy_flow::flow_forward
