// The whole forward's kernels on rows of live flows, but for their products: the neuron, and the heads with the rules
// of a flow's step. Written once for the GPU and for the checked run on the host. In the namespace of the component
// that had them first; the whole backward pass takes them too.
#pragma once

#include "kernels/energy_flow/common/flow_arguments.h"
#include "kernels/energy_flow/common/gru.h"
#include "kernels/energy_flow/common/head_sums.h"
#include "kernels/energy_flow/common/neuron_warp.h"

namespace twinbench::energy_flow::flow_forward {

namespace simt = kernels::simt;

// The neuron's inputs of a row, as its warps ask for them.
struct ListedFlows {
  struct Position {
    SlotFields of;
    const std::int32_t* slot;
    TWINBENCH_HOST_DEVICE float at(std::int64_t row, int axis) const {
      return (axis == 0 ? of.x : axis == 1 ? of.y : of.z)[slot[row]];
    }
  };
  struct Energy {
    const float* of;
    const std::int32_t* slot;
    TWINBENCH_HOST_DEVICE float at(std::int64_t row, int) const { return of[slot[row]]; }
  };
  simple_neuron::Layout layout;
  bool round;
  std::int64_t flows;
  const float* weights;
  Position position;
  Energy energy;
};

// Grid: simple_neuron::forward_blocks(rows that there can be). Features and energy, guarded, as the first recurrent
// layer multiplies them. kRound: in bf16 mode.
template <bool kRound>
struct NeuronOfRows {
  static constexpr int kMaxThreads = simple_neuron::kNeuronThreads;
  // Dynamic, for 32 hidden channels and 64 outputs.
  static std::int64_t documented_shared_bytes() { return simple_neuron::forward_shared_bytes({32, 64}); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    namespace neuron = simple_neuron;
    const ListedFlows flows{
        a.neuron, kRound, *a.total, a.neuron_weights, {a.flows, a.rows.slot}, {a.flows.energy, a.rows.slot}};
    const std::int64_t group = std::int64_t{block.index().x} * neuron::kFlowsPerBlock;
    if (group >= flows.flows) return;  // the whole block
    const neuron::Stage at{flows.layout.hidden, flows.layout.outputs};
    auto weights = simt::dynamic_shared<float>(block);
    neuron::load_weights(block, flows);
    block.barrier();
    const int stage = simt::warp(block) * at.forward_rows();
    auto rows = simt::dynamic_shared<neuron::FourFlows>(block, flows.layout.padded() * 4) + stage;
    auto values = weights + (flows.layout.padded() + stage * neuron::kFlowsPerWarp);
    const std::int64_t step = std::int64_t{block.grid().x} * neuron::kFlowsPerBlock;
    const auto guarded = [](float value) { return kernels::guard(value, energy_carrier::kGuardLimit); };
    // The same for all lanes of a warp, and no block barrier inside.
    for (std::int64_t first = group + simt::warp(block) * neuron::kFlowsPerWarp; first < flows.flows; first += step) {
      neuron::Warp<Block, ListedFlows, decltype(weights), decltype(rows)> warp{block, flows,  weights,
                                                                               rows,  values, first};
      warp.load(at);
      warp.layer(at, 0, false);
      warp.layer(at, 1, false);
      warp.over_features(at, [&](std::int64_t row, int channel, float value) {
        a.input[row * a.input_stride + channel] = guarded(value);
      });
      const std::int64_t own = first + simt::lane(block);
      if (simt::lane(block) < neuron::kFlowsPerWarp && own < flows.flows)
        a.input[own * a.input_stride + flows.layout.outputs] = guarded(flows.energy.at(own, 0));
    }
  }
};

// What is known of a row's flow before its step.
struct RowBefore {
  carrier_heads::Vector3<float> position;
  std::int32_t slot, age;
  std::uint32_t sample_key;
};

// Grid: carrier_heads::forward_blocks(rows that there can be). The second layers, then a lane a flow: its intent, where
// that takes it, and what it asks for. keep(row, before, sums, results) is called before the flow is changed.
template <int kWidth>
struct FinishRows {
  static constexpr int kMaxThreads = carrier_heads::kHeadThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    run(block, a, [](auto&&...) {});
  }

 protected:
  template <class Block, class Keep>
  static TWINBENCH_DEVICE void run(Block& block, const Arguments& a, Keep keep) {
    HeadsArguments heads = a.heads;
    heads.flows = *a.total;
    heads.rule = carrier_heads::with_scale(heads.rule, heads.scale);
    heads.rule.key.step = static_cast<std::uint32_t>(a.step_at_hand());
    const std::int64_t first = std::int64_t{block.index().x} * carrier_heads::kFlowsPerBlock;
    if (first >= heads.flows) return;  // the whole block
    Sums::with_weights(block, heads, [&](const auto& weights) { finish(block, a, heads, weights, first, keep); });
  }

 private:
  using Sums = carrier_heads::HeadSums<kWidth>;

  template <class Block, class Weights, class Keep>
  static TWINBENCH_DEVICE void finish(Block& block, const Arguments& a, const HeadsArguments& heads,
                                      const Weights& weights, std::int64_t first, Keep keep) {
    auto shares = simt::shared_array<float, Sums::kShares>(block);
    const std::int64_t step = std::int64_t{block.grid().x} * carrier_heads::kFlowsPerBlock;
    for (std::int64_t group = first; group < heads.flows; group += step) {
      const int thread = simt::thread_rank(block);
      const std::int64_t row = group + thread;
      const bool there = thread < carrier_heads::kFlowsPerBlock && row < heads.flows;
      RowBefore before = {};
      if (there) before = before_of(a, a.rows.slot[row]);  // on its way while the rows of sums are
      Sums::second_layers(block, heads, weights, group, shares);
      block.barrier();
      if (there) move(a, heads.rule, before, Sums::own_sums(heads, shares, thread), row, keep);
      block.barrier();
    }
  }

  static TWINBENCH_DEVICE RowBefore before_of(const Arguments& a, std::int32_t slot) {
    const std::int64_t key = a.sample_key[a.slots.sample_of(slot)];
    return {
        {a.flows.x[slot], a.flows.y[slot], a.flows.z[slot]}, slot, a.flows.age[slot], static_cast<std::uint32_t>(key)};
  }

  template <class Keep>
  static TWINBENCH_DEVICE void move(const Arguments& a, const carrier_heads::Rule<float>& rule, const RowBefore& before,
                                    const carrier_heads::Sums<float>& sums, std::int64_t row, Keep keep) {
    const std::int32_t slot = before.slot;
    const carrier_heads::Results<float> to = carrier_heads::finish(rule, sums, before.position, before.sample_key,
                                                                   static_cast<std::uint32_t>(a.slots.number_of(slot)));
    const flow_movement::Flow<float> flow =
        flow_movement::moved(a.movement, false, to.raw.x, to.raw.y, to.raw.z, to.energy, before.age);
    keep(row, before, sums, to);
    a.flows.x[slot] = flow.x;
    a.flows.y[slot] = flow.y;
    a.flows.z[slot] = flow.z;
    a.flows.energy[slot] = flow.energy;
    a.flows.distance[slot] = flow.distance;
    a.flows.age[slot] = flow.age;
    a.flows.status[slot] = static_cast<std::uint8_t>(flow.status);
    const float margin = step_margin(a.movement, rule, to, flow.outcome);
    const std::int32_t requests = flow.outcome == flow_movement::kStaysActive ? to.spawn_count : 0;
    a.results.outcome[row] = flow.outcome;
    a.results.requests[row] = requests;
    a.results.margin[row] =
        is_done(flow.status) ? smaller(margin, place_margin(flow.x, flow.y, a.width, a.height)) : margin;
    if (requests == 0) return;
    a.results.x[row] = before.position.x;
    a.results.y[row] = before.position.y;
    a.results.z[row] = before.position.z;
    a.results.child_energy[row] = to.child_energy;
  }
};

}  // namespace twinbench::energy_flow::flow_forward
