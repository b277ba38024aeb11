// The simple neuron on the host (C06): one tile of flows through all layers (see kernels/common/tile.h). In the
// namespace of the component that specifies it; the whole forward takes it too.
#pragma once

#include <cstdint>

#include "kernels/common/tile.h"
#include "kernels/energy_flow/common/neuron_layout.h"

namespace twinbench::energy_flow::simple_neuron {

// Everything one tile computes on the way, in one array of size() values. `position` is filled by the caller and
// already an operand; `energy` is the last row of `state`.
template <int kLanes, class Real = float>
struct Tile {
  Layout layout;
  Real* base = nullptr;

  static std::int64_t size(const Layout& layout) {
    return std::int64_t{kLanes} * (17 + 6 * layout.hidden + layout.outputs);
  }
  TWINBENCH_HOST_DEVICE Real* row(int index) const { return base + index * kLanes; }
  TWINBENCH_HOST_DEVICE Real* position() const { return row(0); }                  // [3]
  TWINBENCH_HOST_DEVICE Real* state() const { return row(3); }                     // [4]
  TWINBENCH_HOST_DEVICE Real* energy() const { return row(6); }                    // [1]
  TWINBENCH_HOST_DEVICE Real* inverse(int layer) const { return row(7 + layer); }  // [1]
  TWINBENCH_HOST_DEVICE Real* position_gradient() const { return row(9); }         // [3], backward only
  TWINBENCH_HOST_DEVICE Real* energy_gradient() const { return row(12); }          // [1]
  TWINBENCH_HOST_DEVICE Real* state_gradient() const { return row(13); }           // [4]
  TWINBENCH_HOST_DEVICE Real* normal(int layer) const { return wide(2 * layer); }  // [hidden], likewise below
  TWINBENCH_HOST_DEVICE Real* hidden(int layer) const { return wide(2 * layer + 1); }
  TWINBENCH_HOST_DEVICE Real* gradient(int layer) const { return wide(4 + layer); }  // backward only
  TWINBENCH_HOST_DEVICE Real* features() const { return wide(6); }                   // [outputs], or their gradient
  // What hidden layer `layer` multiplies.
  TWINBENCH_HOST_DEVICE Real* input(int layer) const { return layer == 0 ? state() : hidden(0); }

 private:
  TWINBENCH_HOST_DEVICE Real* wide(int index) const { return row(17 + index * layout.hidden); }
};

// Fills the tile's hidden layers from its position and energy; `weights` are packed, matrices already operands.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void hidden_layers(const Tile<kLanes, Real>& t, const Real* __restrict weights, bool round) {
  namespace tile = kernels::tile;
  const Layout at = t.layout;
  tile::multiply<kLanes>(3, 3, weights + at.coordinate_weight(), 1, 3, t.position(), weights + at.coordinate_bias(),
                         t.state());
  tile::round_operands<kLanes>(4, t.state(), round);
  for (int l = 0; l < 2; ++l) {
    tile::multiply<kLanes>(at.hidden, at.inner(l), weights + at.weight(l), 1, at.hidden, t.input(l),
                           weights + at.bias(l), t.normal(l));
    tile::normalize<kLanes>(at.hidden, t.normal(l), t.inverse(l));
    tile::activate<kLanes>(at.hidden, t.normal(l), weights + at.gain(l), weights + at.shift(l), round, t.hidden(l));
  }
}

template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void forward(const Tile<kLanes, Real>& t, const Real* __restrict weights, bool round) {
  const Layout at = t.layout;
  hidden_layers(t, weights, round);
  kernels::tile::multiply<kLanes>(at.outputs, at.hidden, weights + at.weight_out(), 1, at.outputs, t.hidden(1),
                                  weights + at.bias_out(), t.features());
}

}  // namespace twinbench::energy_flow::simple_neuron
