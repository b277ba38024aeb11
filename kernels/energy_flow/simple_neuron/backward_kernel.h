// The simple neuron's backward kernel: given gradients of the features, results of position and energy.
#pragma once

#include "kernels/energy_flow/common/neuron_back_kernel.h"
#include "kernels/energy_flow/simple_neuron/kernel.h"

namespace twinbench::energy_flow::simple_neuron {

struct GivenGradients {
  template <class Block, class Warp, class Values>
  static TWINBENCH_DEVICE void load_features(Block& block, Warp& warp, const Stage& at, Values) {
    for (int c = simt::lane(block); c < warp.a.layout.outputs; c += simt::kWarpSize) {
      FourFlows value{};
      for (int i = 0; i < kFlowsPerWarp; ++i)
        if (warp.first + i < warp.a.flows) value.of[i] = warp.a.grad_features.at(warp.first + i, c);
      warp.rows[at.features() + c] = value;
    }
    block.warp_barrier();
  }
  static TWINBENCH_DEVICE void store_energy(const Arguments<float>& a, std::int64_t flow, float gradient) {
    a.grad_energy[flow] = gradient;
  }
  static TWINBENCH_DEVICE void store_position(const Arguments<float>& a, std::int64_t first, int element,
                                              float gradient) {
    a.grad_position[first * 3 + element] = gradient;
  }
  static TWINBENCH_DEVICE float sum_before(const Arguments<float>&, std::int64_t) { return 0.0f; }
};

struct Backward : WalkBack<GivenGradients> {
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments<float>& a) const {
    walk(block, a);
  }
};

}  // namespace twinbench::energy_flow::simple_neuron
