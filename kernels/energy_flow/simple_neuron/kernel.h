// The simple neuron's forward kernel: weights in shared memory, a warp takes four flows through all layers.
#pragma once

#include "kernels/energy_flow/common/neuron_warp.h"
#include "kernels/energy_flow/simple_neuron/arguments.h"

namespace twinbench::energy_flow::simple_neuron {

// Grid: any number of blocks, each takes every grid-th group of kFlowsPerBlock flows.
struct Forward {
  static constexpr int kMaxThreads = kThreads;
  // Dynamic, for 32 hidden channels and 64 outputs.
  static std::int64_t documented_shared_bytes() { return forward_shared_bytes({32, 64}); }
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments<float>& a) const {
    const Stage at{a.layout.hidden, a.layout.outputs};
    auto weights = simt::dynamic_shared<float>(block);
    load_weights(block, a);
    block.barrier();
    const int stage = simt::warp(block) * at.forward_rows();
    auto rows = simt::dynamic_shared<FourFlows>(block, a.layout.padded() * 4) + stage;
    auto values = weights + (a.layout.padded() + stage * kFlowsPerWarp);
    const std::int64_t step = static_cast<std::int64_t>(block.grid().x) * kFlowsPerBlock;
    std::int64_t first =
        static_cast<std::int64_t>(block.index().x) * kFlowsPerBlock + simt::warp(block) * kFlowsPerWarp;
    for (; first < a.flows; first += step) {  // the same for all lanes of a warp, and no block barrier inside
      Warp<Block, Arguments<float>, decltype(weights), decltype(rows)> warp{block, a, weights, rows, values, first};
      warp.load(at);
      warp.layer(at, 0, false);
      warp.layer(at, 1, false);
      warp.over_features(
          at, [&](std::int64_t flow, int c, float value) { a.features[flow * a.layout.outputs + c] = value; });
    }
  }
};

}  // namespace twinbench::energy_flow::simple_neuron
