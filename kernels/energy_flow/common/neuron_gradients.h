// The simple neuron on the host (C06): one tile of flows back through all layers (see kernels/common/tile.h). In the
// namespace of the component that specifies it; the whole backward pass takes it too.
#pragma once

#include "kernels/energy_flow/common/neuron_tile.h"

namespace twinbench::energy_flow::simple_neuron {

// Weight gradients while they are being summed: matrices in the packed layout, and [channel][kLanes] sums of all
// biases, gains and shifts, which finish() adds up in lane order. Zero both before the first tile.
template <int kLanes, class Real = float>
struct Gradients {
  Layout layout;
  Real* packed = nullptr;     // [layout.total()]
  Real* lane_sums = nullptr;  // [lane_sum_size(layout)]
  Real* rows = nullptr;       // [rows_size(layout)], scratch

  static std::int64_t lane_sum_size(const Layout& layout) {
    return std::int64_t{kLanes} * (3 + 6 * layout.hidden + layout.outputs);
  }
  static std::int64_t rows_size(const Layout& layout) {
    const std::int64_t widest = layout.hidden > layout.outputs ? layout.hidden : layout.outputs;
    return kLanes * (widest > 3 ? widest : 3);  // the coordinates have three
  }
  // The three vectors of a hidden layer (bias 0, gain 1, shift 2), and the bias of the outputs.
  TWINBENCH_HOST_DEVICE Real* sums(int layer, int vector) const {
    return lane_sums + (3 + (3 * layer + vector) * layout.hidden) * kLanes;
  }
  TWINBENCH_HOST_DEVICE Real* bias_out() const { return sums(2, 0); }

  TWINBENCH_HOST_DEVICE void finish() const {
    kernels::tile::finish_lane_sums<kLanes>(3, lane_sums, packed + layout.coordinate_bias());
    for (int l = 0; l < 2; ++l)
      kernels::tile::finish_lane_sums<kLanes>(3 * layout.hidden, sums(l, 0), packed + layout.bias(l));
    kernels::tile::finish_lane_sums<kLanes>(layout.outputs, bias_out(), packed + layout.bias_out());
  }
};

// From the gradient of GELU(LN(product)) of hidden layer `l`, in t.gradient(l), to that of the product, in place, and
// to that of what the layer multiplied, in `below`.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void layer_backward(const Tile<kLanes, Real>& t, int l, const Real* __restrict weights,
                                          bool round, const Gradients<kLanes, Real>& sum, Real* below) {
  namespace tile = kernels::tile;
  const Layout at = t.layout;
  tile::activation_backward<kLanes>(at.hidden, t.normal(l), t.inverse(l), weights + at.gain(l), weights + at.shift(l),
                                    t.gradient(l), sum.sums(l, 1), sum.sums(l, 2));
  tile::add_to_lane_sums<kLanes>(at.hidden, t.gradient(l), sum.sums(l, 0));
  tile::round_operands<kLanes>(at.hidden, t.gradient(l), round);
  tile::add_products<kLanes>(at.inner(l), at.hidden, t.input(l), t.gradient(l), sum.rows, sum.packed + at.weight(l));
  tile::multiply<kLanes>(at.inner(l), at.hidden, weights + at.weight(l), at.hidden, 1, t.gradient(l), nullptr, below);
}

// From a tile whose hidden layers are filled. On entry t.features() holds the gradient of the features, zero in unused
// lanes; on exit t.position_gradient() and t.energy_gradient() are filled.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void walk_back(const Tile<kLanes, Real>& t, const Real* __restrict weights, bool round,
                                     const Gradients<kLanes, Real>& sum) {
  namespace tile = kernels::tile;
  const Layout at = t.layout;
  tile::add_to_lane_sums<kLanes>(at.outputs, t.features(), sum.bias_out());
  tile::round_operands<kLanes>(at.outputs, t.features(), round);
  tile::add_products<kLanes>(at.hidden, at.outputs, t.hidden(1), t.features(), sum.rows, sum.packed + at.weight_out());
  tile::multiply<kLanes>(at.hidden, at.outputs, weights + at.weight_out(), at.outputs, 1, t.features(), nullptr,
                         t.gradient(1));
  layer_backward(t, 1, weights, round, sum, t.gradient(0));
  layer_backward(t, 0, weights, round, sum, t.state_gradient());
  Real* coordinates = t.state_gradient();
  tile::add_to_lane_sums<kLanes>(3, coordinates, sum.lane_sums);
  for (int lane = 0; lane < kLanes; ++lane) t.energy_gradient()[lane] = coordinates[3 * kLanes + lane];
  tile::round_operands<kLanes>(3, coordinates, round);
  tile::add_products<kLanes>(3, 3, t.position(), coordinates, sum.rows, sum.packed + at.coordinate_weight());
  tile::multiply<kLanes>(3, 3, weights + at.coordinate_weight(), 3, 1, coordinates, nullptr, t.position_gradient());
}

// Recomputes the hidden layers (nothing is saved by the forward pass), then walks back.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void backward(const Tile<kLanes, Real>& t, const Real* __restrict weights, bool round,
                                    const Gradients<kLanes, Real>& sum) {
  hidden_layers(t, weights, round);
  walk_back(t, weights, round, sum);
}

}  // namespace twinbench::energy_flow::simple_neuron
