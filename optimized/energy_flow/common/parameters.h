// Parameters as the tiles of flows take them, packed once at preparation.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/energy_flow/common/heads.h"
#include "kernels/energy_flow/common/neuron_layout.h"
#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

// A recurrent layer's channels are taken in pairs. A pair has [input][6] coefficients of reset, update and candidate,
// two neighbours each, then [hidden][6] of reset, update and the candidate's hidden part; the last pair of an odd width
// is filled up with zeros.
struct RecurrentLayout {
  std::int64_t input = 0, hidden = 0;

  std::int64_t pairs() const { return (hidden + 1) / 2; }
  std::int64_t pair_size() const { return 6 * (input + hidden); }
};
constexpr int kPairSums = 8;  // reset, update, candidate of the input, of the hidden state: biases and sums of a pair

struct RecurrentPack {
  RecurrentLayout layout;
  at::Tensor weights, biases;  // [pairs, pair_size], [pairs, 8]
};

// First layers of all heads side by side, transposed: [hidden][energy | displacement | gate | child]; then the second
// layers'.
struct HeadsPack {
  std::int64_t hidden = 0, energy = 0, head = 0;
  bool gate = false;
  at::Tensor first = {}, first_bias = {};  // [hidden, rows], [rows]
  at::Tensor energy_out = {}, displacement_out = {}, gate_out = {},
             out_bias = {};  // [energy], [head, 3] transposed, [head], [5]

  // Rows of the first layers; of those before child() GELU is taken.
  std::int64_t gated() const { return energy + head; }
  std::int64_t child() const { return gated() + (gate ? head : 0); }
  std::int64_t rows() const { return child() + (gate ? 1 : 0); }
};

// In the order of simple_neuron::Layout: matrices transposed, in bf16 mode rounded.
at::Tensor packed_neuron(const NamedTensors& inputs, const Setting& setting);
// Gradients in that order, to the results of each parameter's own.
void unpack_neuron(const at::Tensor& gradients, const simple_neuron::Layout& layout, const NamedTensors& results);
carrier_heads::Rule<float> heads_rule_of(const Setting& setting);

struct Parameters {
  Parameters(const NamedTensors& inputs, const Setting& setting);

  simple_neuron::Layout neuron_layout;
  at::Tensor neuron;
  std::vector<RecurrentPack> layers;
  HeadsPack heads;
  carrier_heads::Rule<float> heads_rule;  // its key's step is each step's own

  std::vector<at::Tensor> packs() const;  // all of the above, in a fixed order
};

}  // namespace twinbench::energy_flow::flow_forward
