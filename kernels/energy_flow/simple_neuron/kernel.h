// The simple neuron's forward kernel: weights in shared memory, a warp takes four flows through all layers.
#pragma once

#include "kernels/common/layer_norm.h"
#include "kernels/common/math.h"
#include "kernels/common/simt.h"
#include "kernels/energy_flow/simple_neuron/arguments.h"

namespace twinbench::energy_flow::simple_neuron {


constexpr int kNeuronThreads = 128;                                         // four warps
constexpr int kFlowsPerWarp = 4;                                            // one weight read serves four flows
constexpr int kFlowsPerBlock = kNeuronThreads / simt::kWarpSize * kFlowsPerWarp;

// One value of each of a warp's flows: a single 16-byte access of shared memory.
struct alignas(16) FourFlows {
  float of[kFlowsPerWarp];
};

// Rows of FourFlows that one warp stages; every row of a hidden layer belongs to the lane channel % 32 until a barrier.
struct NeuronStage {
  int hidden = 0, outputs = 0;
  TWINBENCH_HOST_DEVICE int position() const { return 0; }                   // [3]
  TWINBENCH_HOST_DEVICE int state() const { return 3; }                      // [4]
  TWINBENCH_HOST_DEVICE int hidden_1() const { return 7; }                   // [hidden]
  TWINBENCH_HOST_DEVICE int hidden_2() const { return 7 + hidden; }          // [hidden]
  TWINBENCH_HOST_DEVICE int forward_rows() const { return 7 + 2 * hidden; }
  // Backward only.
  TWINBENCH_HOST_DEVICE int normal_1() const { return 7 + 2 * hidden; }      // [hidden]
  TWINBENCH_HOST_DEVICE int normal_2() const { return 7 + 3 * hidden; }      // [hidden]
  TWINBENCH_HOST_DEVICE int before_1() const { return 7 + 4 * hidden; }      // [hidden], gradient before the gain
  TWINBENCH_HOST_DEVICE int before_2() const { return 7 + 5 * hidden; }      // [hidden]
  TWINBENCH_HOST_DEVICE int gradient_1() const { return 7 + 6 * hidden; }    // [hidden], of the first product
  TWINBENCH_HOST_DEVICE int gradient_2() const { return 7 + 7 * hidden; }    // [hidden], of the second product
  TWINBENCH_HOST_DEVICE int features() const { return 7 + 8 * hidden; }      // [outputs], gradient
  TWINBENCH_HOST_DEVICE int coordinates() const { return features() + outputs; }  // [4], gradient of the state
  TWINBENCH_HOST_DEVICE int backward_rows() const { return coordinates() + 4; }
};

TWINBENCH_HOST_DEVICE int padded_weights(const SimpleNeuronLayout& layout) { return (layout.total() + 3) / 4 * 4; }

// sum[i] += sum_j weight[j * stride] * operand(in[j], flow i), j ascending.
template <class Weights, class Rows>
TWINBENCH_DEVICE void accumulate(int inner, Weights weight, int stride, Rows in, bool round, FourFlows& sum) {
  for (int j = 0; j < inner; ++j) {
    const float w = weight[j * stride];
    const FourFlows x = in[j];
    TWINBENCH_UNROLL
    for (int i = 0; i < kFlowsPerWarp; ++i) sum.of[i] = multiply_add(w, operand(x.of[i], round), sum.of[i]);
  }
}

template <class Block>
TWINBENCH_DEVICE FourFlows warp_sums(Block& block, FourFlows value) {
  TWINBENCH_UNROLL
  for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] = simt::warp_sum(block, value.of[i]);
  return value;
}

// What a warp needs to know while it works on flows [first, first + kFlowsPerWarp).
template <class Block, class Weights, class Rows>
struct NeuronWarp {
  Block& block;
  const SimpleNeuronArguments& a;
  Weights weights;  // shared, packed
  Rows rows;        // shared, this warp's stage
  std::int64_t first;

  // Position (as an operand) and energy of the four flows; zeros past the last flow. Ends with the state staged.
  TWINBENCH_DEVICE void load(const NeuronStage& at) {
    const int lane = simt::lane(block);
    if (lane < 4) {
      FourFlows value{};
      for (int i = 0; i < kFlowsPerWarp; ++i) {
        const std::int64_t flow = first + i;
        if (flow >= a.flows) continue;
        value.of[i] = lane < 3 ? a.position.data[flow * a.position.row_stride + lane * a.position.column_stride]
                               : a.energy.data[flow * a.energy.row_stride];
        value.of[i] = operand(value.of[i], a.round);
      }
      rows[lane < 3 ? at.position() + lane : at.state() + 3] = value;
    }
    block.warp_barrier();
    if (lane < 3) {
      FourFlows value;
      const float bias = weights[a.layout.coordinate_bias() + lane];
      for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] = bias;
      accumulate(3, weights + a.layout.coordinate_weight() + lane, 3, rows + at.position(), false, value);
      for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] = operand(value.of[i], a.round);
      rows[at.state() + lane] = value;
    }
    block.warp_barrier();
  }

  // hidden = operand(GELU(LN(weight * in + bias))); keeps the normalised values too if `normal` is a row (not -1).
  // Returns 1 / deviation. Ends with the layer staged.
  TWINBENCH_DEVICE FourFlows layer(int inner, int weight, int in, int hidden, int normal) {
    const int width = a.layout.hidden, lane = simt::lane(block);
    const int bias = weight + inner * width, gain = bias + width, shift = gain + width;
    FourFlows sum{}, squares{}, inverse;
    for (int c = lane; c < width; c += simt::kWarpSize) {
      FourFlows value;
      const float start = weights[bias + c];
      for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] = start;
      accumulate(inner, weights + weight + c, width, rows + in, false, value);
      for (int i = 0; i < kFlowsPerWarp; ++i) sum.of[i] += value.of[i];
      rows[hidden + c] = value;
    }
    const float count = static_cast<float>(width);
    FourFlows mean = warp_sums(block, sum);
    for (int i = 0; i < kFlowsPerWarp; ++i) mean.of[i] /= count;
    for (int c = lane; c < width; c += simt::kWarpSize) {
      const FourFlows value = rows[hidden + c];
      for (int i = 0; i < kFlowsPerWarp; ++i) {
        const float deviation = value.of[i] - mean.of[i];
        squares.of[i] = multiply_add(deviation, deviation, squares.of[i]);
      }
    }
    squares = warp_sums(block, squares);
    for (int i = 0; i < kFlowsPerWarp; ++i)
      inverse.of[i] = inverse_deviation(squares.of[i] / count, static_cast<float>(kLayerNormEpsilon));
    for (int c = lane; c < width; c += simt::kWarpSize) {
      FourFlows value = rows[hidden + c];
      const float g = weights[gain + c], s = weights[shift + c];
      for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] = normalized(value.of[i], mean.of[i], inverse.of[i]);
      if (normal >= 0) rows[normal + c] = value;
      for (int i = 0; i < kFlowsPerWarp; ++i)
        value.of[i] = operand(gelu(multiply_add(value.of[i], g, s)), a.round);
      rows[hidden + c] = value;
    }
    block.warp_barrier();
    return inverse;
  }

  TWINBENCH_DEVICE void store_features(const NeuronStage& at) {
    const SimpleNeuronLayout& layout = a.layout;
    for (int c = simt::lane(block); c < layout.outputs; c += simt::kWarpSize) {
      FourFlows value;
      const float bias = weights[layout.bias_3() + c];
      for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] = bias;
      accumulate(layout.hidden, weights + layout.weight_3() + c, layout.outputs, rows + at.hidden_2(), false, value);
      for (int i = 0; i < kFlowsPerWarp; ++i)
        if (first + i < a.flows) a.features[(first + i) * layout.outputs + c] = value.of[i];
    }
  }
};

// Grid: any number of blocks, each takes every grid-th group of kFlowsPerBlock flows.
struct SimpleNeuronForward {
  static constexpr int kMaxThreads = kNeuronThreads;
  static std::int64_t documented_shared_bytes();  // dynamic, for 32 hidden channels and 64 outputs
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SimpleNeuronArguments& a) const {
    const NeuronStage at{a.layout.hidden, a.layout.outputs};
    auto weights = simt::dynamic_shared<float>(block);
    for (int i = simt::thread_rank(block); i < a.layout.total(); i += kNeuronThreads) weights[i] = a.weights[i];
    block.barrier();
    auto rows = simt::dynamic_shared<FourFlows>(block, padded_weights(a.layout) * 4) +
                simt::warp(block) * at.forward_rows();
    const std::int64_t step = static_cast<std::int64_t>(block.grid().x) * kFlowsPerBlock;
    std::int64_t first = static_cast<std::int64_t>(block.index().x) * kFlowsPerBlock + simt::warp(block) * kFlowsPerWarp;
    for (; first < a.flows; first += step) {  // the same for all lanes of a warp, and no block barrier inside
      NeuronWarp<Block, decltype(weights), decltype(rows)> warp{block, a, weights, rows, first};
      warp.load(at);
      warp.layer(SimpleNeuronLayout::kState, a.layout.weight_1(), at.state(), at.hidden_1(), -1);
      warp.layer(a.layout.hidden, a.layout.weight_2(), at.hidden_1(), at.hidden_2(), -1);
      warp.store_features(at);
    }
  }
};

}  // namespace twinbench::energy_flow::simple_neuron
