// The carrier heads' forward kernel, written once for the GPU and for the checked run on the host.
//
// A block takes 32 flows at a time: a warp the wide layers of four of them, then one warp the scalar rules with a lane
// a flow. Rows of three values go through shared memory, so that neighbouring lanes touch neighbouring addresses.
#pragma once

#include "kernels/energy_flow/carrier_heads/arguments.h"
#include "kernels/energy_flow/common/head_sums.h"

namespace twinbench::energy_flow::carrier_heads {

// `count` floats between global and shared memory, all threads together. No barrier.
template <class Block, class Shared>
TWINBENCH_DEVICE void load_values(Block& block, const float* from, Shared to, int count) {
  for (int i = simt::thread_rank(block); i < count; i += kThreads) to[i] = from[i];
}
template <class Block, class Shared>
TWINBENCH_DEVICE void store_values(Block& block, Shared from, float* to, int count) {
  for (int i = simt::thread_rank(block); i < count; i += kThreads) to[i] = from[i];
}
template <class Shared>
TWINBENCH_DEVICE Vector3<float> load_vector(Shared rows, int row) {
  const float x = rows[3 * row], y = rows[3 * row + 1], z = rows[3 * row + 2];
  return {x, y, z};
}
template <class Shared>
TWINBENCH_DEVICE void store_vector(Shared rows, int row, Vector3<float> value) {
  rows[3 * row] = value.x;
  rows[3 * row + 1] = value.y;
  rows[3 * row + 2] = value.z;
}

// Grid: forward_blocks(flows). kWidth as HeadSums has it.
template <int kWidth>
struct FinishFlows {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ForwardArguments<float>& a) const {
    HeadSums<kWidth>::with_weights(block, a, [&](const auto& weights) { finish_groups(block, a, weights); });
  }

 private:
  template <class Block, class Weights>
  static TWINBENCH_DEVICE void finish_groups(Block& block, const ForwardArguments<float>& a, const Weights& weights) {
    auto shares = simt::shared_array<float, HeadSums<kWidth>::kShares>(block);
    auto position = simt::shared_array<float, 3 * kFlowsPerBlock, 0>(block);
    auto displacement = simt::shared_array<float, 3 * kFlowsPerBlock, 1>(block);
    auto delta = simt::shared_array<float, 3 * kFlowsPerBlock, 2>(block);
    auto raw = simt::shared_array<float, 3 * kFlowsPerBlock, 3>(block);
    const std::int64_t step = std::int64_t{block.grid().x} * kFlowsPerBlock;
    for (std::int64_t group = std::int64_t{block.index().x} * kFlowsPerBlock; group < a.flows; group += step) {
      const int count = a.flows - group < kFlowsPerBlock ? static_cast<int>(a.flows - group) : kFlowsPerBlock;
      const int row = simt::thread_rank(block);
      const std::int64_t flow = group + row;
      std::uint32_t sample_key = 0, local_id = 0;  // on their way while the rows are
      if (row < count) {
        sample_key = static_cast<std::uint32_t>(a.sample_key[flow]);
        local_id = static_cast<std::uint32_t>(a.local_id[flow]);
      }
      load_values(block, a.position + 3 * group, position, 3 * count);
      HeadSums<kWidth>::second_layers(block, a, weights, group, shares);
      block.barrier();
      if (row < count) {
        const Sums<float> own = HeadSums<kWidth>::own_sums(a, shares, row);
        const Results<float> result = finish(a.rule, own, load_vector(position, row), sample_key, local_id);
        a.energy[flow] = result.energy;
        a.spawn_measure[flow] = result.spawn_measure;
        a.spawn_count[flow] = result.spawn_count;
        a.child_energy[flow] = result.child_energy;
        if (a.second_sums) store_sums(a.second_sums, a.flows, flow, own);
        store_vector(displacement, row, own.displacement);
        store_vector(delta, row, result.delta);
        store_vector(raw, row, result.raw);
      }
      block.barrier();
      store_values(block, displacement, a.displacement + 3 * group, 3 * count);
      store_values(block, delta, a.delta + 3 * group, 3 * count);
      store_values(block, raw, a.raw + 3 * group, 3 * count);
    }
  }
};

// Rows of any length and start.
struct ForwardAnyWidth : FinishFlows<1> {};

struct Forward : FinishFlows<4> {
  // Dynamic, for 512 state channels in gate mode.
  static std::int64_t documented_shared_bytes() { return forward_shared_bytes({256, 64, 392}, true); }
};

}  // namespace twinbench::energy_flow::carrier_heads
