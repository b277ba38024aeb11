// The simple neuron's forward kernel in fp32 for many flows at the documents' widths: a thread a flow, with its sums in
// registers, so that a read of four weights, the same for the whole warp, serves 128 products.
//
// Every sum is taken in the order of Forward, so both give the same bits.
#pragma once

#include "kernels/energy_flow/simple_neuron/kernel.h"

namespace twinbench::energy_flow::simple_neuron {

// Grid: any number of blocks, each takes every grid-th group of kThreads flows. Position and energy are contiguous.
struct ForwardMany {
  static constexpr int kMaxThreads = kThreads;
  static std::int64_t documented_shared_bytes() { return many_shared_bytes(); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments<float>& a) const {
    load_weights(block, a);
    block.barrier();
    const int warp_bytes = many_layout().padded() * 4 + simt::warp(block) * kStageFloats * 4;
    const Shared<decltype(simt::dynamic_shared<float>(block)), decltype(simt::dynamic_shared<Four>(block))> shared{
        simt::dynamic_shared<float>(block), simt::dynamic_shared<Four>(block),
        simt::dynamic_shared<float>(block, warp_bytes), simt::dynamic_shared<Four>(block, warp_bytes)};
    const std::int64_t step = static_cast<std::int64_t>(block.grid().x) * kThreads;
    std::int64_t first = static_cast<std::int64_t>(block.index().x) * kThreads + simt::warp(block) * simt::kWarpSize;
    for (; first < a.flows; first += step) {  // the same for all lanes of a warp, and no block barrier inside
      const int count = a.flows - first < simt::kWarpSize ? static_cast<int>(a.flows - first) : simt::kWarpSize;
      load_state(block, a, shared, first, count);
      for (int index = 0; index < 2; ++index) hidden_layer(block, shared, index);
      store_features(block, a, shared, first, count);
    }
  }

 private:
  using Four = kernels::Floats<4>;
  static constexpr int kHidden = kManyHidden, kOutputs = kManyOutputs, kLanes = simt::kWarpSize;
  static constexpr int kPerRow = kLanes / 4;  // vectors of a row of 32 values
  static constexpr int kUnroll = 4;           // inputs of a layer
  static constexpr int kUnrollActivations = 8;
  static_assert(kHidden == kLanes && kOutputs % kLanes == 0 && kLanes * kHidden <= kStageFloats);

  // The packed weights, and what the warp stages: values as [channel][flow], then features as [flow][channel].
  template <class Values, class Fours>
  struct Shared {
    Values weights;
    Fours weight_fours;
    Values stage;
    Fours stage_fours;
  };

  // The state of the lane's flow, zeros past the last.
  template <class Block, class Memory>
  static TWINBENCH_DEVICE void load_state(Block& block, const Arguments<float>& a, const Memory& shared,
                                          std::int64_t first, int count) {
    const int lane = simt::lane(block);
    float row[3];
    TWINBENCH_UNROLL
    for (int k = 0; k < 3; ++k) {
      const int i = k * kLanes + lane;
      row[k] = i < 3 * count ? a.position.data[first * 3 + i] : 0.0f;
    }
    const float energy = lane < count ? a.energy.data[first + lane] : 0.0f;
    TWINBENCH_UNROLL
    for (int k = 0; k < 3; ++k) shared.stage[k * kLanes + lane] = row[k];
    block.warp_barrier();
    float position[3];
    TWINBENCH_UNROLL
    for (int k = 0; k < 3; ++k) position[k] = shared.stage[3 * lane + k];
    block.warp_barrier();  // before the state takes their place
    TWINBENCH_UNROLL
    for (int c = 0; c < 3; ++c) {
      float sum = shared.weights[many_layout().coordinate_bias() + c];
      TWINBENCH_UNROLL
      for (int k = 0; k < 3; ++k) {
        const float weight = shared.weights[many_layout().coordinate_weight() + 3 * k + c];
        sum = multiply_add(weight, position[k], sum);
      }
      shared.stage[c * kLanes + lane] = sum;
    }
    shared.stage[3 * kLanes + lane] = energy;
  }

  // sums += weights [inner][kCount] * the staged values of the lane's flow, in ascending order.
  template <int kCount, class Memory>
  static TWINBENCH_DEVICE void add_products(const Memory& shared, int lane, int inner, int weight,
                                            float (&sums)[kCount]) {
    for (int start = 0; start < inner; start += kUnroll) {
      TWINBENCH_UNROLL
      for (int u = 0; u < kUnroll; ++u) {
        const float x = shared.stage[(start + u) * kLanes + lane];
        TWINBENCH_UNROLL
        for (int c = 0; c < kCount / 4; ++c) {
          const Four w = shared.weight_fours[(weight + (start + u) * kCount) / 4 + c];
          TWINBENCH_UNROLL
          for (int i = 0; i < 4; ++i) sums[4 * c + i] = multiply_add(w.of[i], x, sums[4 * c + i]);
        }
      }
    }
  }
  template <int kCount, class Memory>
  static TWINBENCH_DEVICE void load_bias(const Memory& shared, int bias, float (&sums)[kCount]) {
    TWINBENCH_UNROLL
    for (int c = 0; c < kCount / 4; ++c) {
      const Four b = shared.weight_fours[bias / 4 + c];
      TWINBENCH_UNROLL
      for (int i = 0; i < 4; ++i) sums[4 * c + i] = b.of[i];
    }
  }

  // The sum of 32 values in the order in which a warp's lanes add theirs.
  template <int kCount>
  static TWINBENCH_DEVICE float tree_sum(const float (&values)[kCount]) {
    if constexpr (kCount == 1) {
      return values[0];
    } else {
      float half[kCount / 2];
      TWINBENCH_UNROLL
      for (int i = 0; i < kCount / 2; ++i) half[i] = values[i] + values[kCount / 2 + i];
      return tree_sum(half);
    }
  }

  // operand(GELU(LN(product))) takes the place of what the layer multiplied.
  template <class Block, class Memory>
  static TWINBENCH_DEVICE void hidden_layer(Block& block, const Memory& shared, int index) {
    const int lane = simt::lane(block);
    float value[kHidden];
    load_bias(shared, many_layout().bias(index), value);
    add_products(shared, lane, many_layout().inner(index), many_layout().weight(index), value);
    const float mean = tree_sum(value) / static_cast<float>(kHidden);
    float squares[kHidden];
    TWINBENCH_UNROLL
    for (int c = 0; c < kHidden; ++c) squares[c] = (value[c] - mean) * (value[c] - mean);
    const float inverse = kernels::inverse_deviation(tree_sum(squares) / static_cast<float>(kHidden));
    TWINBENCH_UNROLL
    for (int c = 0; c < kHidden; ++c) shared.stage[c * kLanes + lane] = value[c];
    for (int start = 0; start < kHidden; start += kUnrollActivations) {  // a loop: short code stays in its cache
      TWINBENCH_UNROLL
      for (int u = 0; u < kUnrollActivations; u += 4) {
        const Four gain = shared.weight_fours[(many_layout().gain(index) + start + u) / 4];
        const Four shift = shared.weight_fours[(many_layout().shift(index) + start + u) / 4];
        TWINBENCH_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int at = (start + u + i) * kLanes + lane;
          const float x = shared.stage[at];
          const float normal = kernels::normalized(x, mean, inverse);
          shared.stage[at] = kernels::short_gelu(kernels::scaled(normal, gain.of[i], shift.of[i]));
        }
      }
    }
  }

  // By way of shared memory, 32 channels at a time, so that a warp stores whole sectors of four flows at once.
  template <class Block, class Memory>
  static TWINBENCH_DEVICE void store_features(Block& block, const Arguments<float>& a, const Memory& shared,
                                              std::int64_t first, int count) {
    const int lane = simt::lane(block);
    float value[kOutputs];
    load_bias(shared, many_layout().bias_out(), value);
    add_products(shared, lane, kHidden, many_layout().weight_out(), value);
    TWINBENCH_UNROLL
    for (int chunk = 0; chunk < kOutputs / kLanes; ++chunk) {
      block.warp_barrier();  // others may still read what lies there
      TWINBENCH_UNROLL
      for (int c = 0; c < kPerRow; ++c) {
        const float* from = value + chunk * kLanes + 4 * c;
        shared.stage_fours[lane * kStageRow + c] = Four{{from[0], from[1], from[2], from[3]}};
      }
      block.warp_barrier();
      TWINBENCH_UNROLL
      for (int k = 0; k < kPerRow; ++k) {
        const int flow = k * (kLanes / kPerRow) + lane / kPerRow, c = lane % kPerRow;
        const Four row = shared.stage_fours[flow * kStageRow + c];
        if (flow < count) kernels::store(a.features + (first + flow) * kOutputs + chunk * kLanes + 4 * c, row);
      }
    }
    block.warp_barrier();
  }
};

}  // namespace twinbench::energy_flow::simple_neuron
