// A warp takes four flows through the simple neuron (C06), whose weights lie in shared memory. In the namespace of the
// component that specifies it; the whole forward takes it too.
#pragma once

#include "kernels/common/layer_norm.h"
#include "kernels/common/math.h"
#include "kernels/common/short_math.h"
#include "kernels/common/simt.h"
#include "kernels/common/vectors.h"
#include "kernels/common/warp_sums.h"
#include "kernels/energy_flow/common/neuron_stage.h"

namespace twinbench::energy_flow::simple_neuron {

namespace simt = kernels::simt;
using kernels::multiply_add;
using kernels::operand;
using kernels::warp_sums;

constexpr int kWeightBatch = 4;  // loads of a thread in flight
static_assert(kNeuronThreads == kWarps * simt::kWarpSize);

// One value of each of a warp's flows: a single 16-byte access of shared memory.
using FourFlows = kernels::Floats<kFlowsPerWarp>;

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

TWINBENCH_DEVICE FourFlows four_times(float value) { return {value, value, value, value}; }

// What a warp needs to know while it works on flows [first, first + kFlowsPerWarp).
// Flows: layout, round, flows, position.at(flow, axis), energy.at(flow, 0).
template <class Block, class Flows, class Values, class Rows>
struct Warp {
  Block& block;
  const Flows& a;
  Values weights;  // shared, packed
  Rows rows;       // shared, this warp's stage
  Values values;   // the same, value by value
  std::int64_t first;

  // Position (as an operand) and energy of the four flows; zeros past the last flow. Ends with the state staged.
  TWINBENCH_DEVICE void load(const Stage& at) {
    const int lane = simt::lane(block);
    constexpr int kPositions = 3 * kFlowsPerWarp;
    float position = 0.0f, energy = 0.0f;
    if (lane < kPositions && first + lane / 3 < a.flows) position = a.position.at(first + lane / 3, lane % 3);
    if (lane < kFlowsPerWarp && first + lane < a.flows) energy = a.energy.at(first + lane, 0);
    if (lane < kPositions) values[(at.position() + lane % 3) * kFlowsPerWarp + lane / 3] = operand(position, a.round);
    if (lane < kFlowsPerWarp) values[(at.state() + 3) * kFlowsPerWarp + lane] = operand(energy, a.round);
    block.warp_barrier();
    if (lane < 3) {
      FourFlows value = four_times(weights[a.layout.coordinate_bias() + lane]);
      accumulate(3, weights + a.layout.coordinate_weight() + lane, 3, rows + at.position(), false, value);
      for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] = operand(value.of[i], a.round);
      rows[at.state() + lane] = value;
    }
    block.warp_barrier();
  }

  // hidden = operand(GELU(LN(weight * in + bias))); keeps the normalised values too if `keep_normal`.
  // Returns 1 / deviation. Ends with the layer staged.
  TWINBENCH_DEVICE FourFlows layer(const Stage& at, int index, bool keep_normal) {
    const Layout& layout = a.layout;
    const int width = layout.hidden, lane = simt::lane(block), hidden = at.hidden(index);
    FourFlows sum{}, squares{}, inverse;
    for (int c = lane; c < width; c += simt::kWarpSize) {
      FourFlows value = four_times(weights[layout.bias(index) + c]);
      accumulate(layout.inner(index), weights + layout.weight(index) + c, width, rows + at.input(index), false, value);
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
    for (int i = 0; i < kFlowsPerWarp; ++i) inverse.of[i] = kernels::inverse_deviation(squares.of[i] / count);
    for (int c = lane; c < width; c += simt::kWarpSize) {
      FourFlows value = rows[hidden + c];
      const float g = weights[layout.gain(index) + c], s = weights[layout.shift(index) + c];
      for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] = kernels::normalized(value.of[i], mean.of[i], inverse.of[i]);
      if (keep_normal) rows[at.normal(index) + c] = value;
      for (int i = 0; i < kFlowsPerWarp; ++i)
        value.of[i] = operand(kernels::short_gelu(kernels::scaled(value.of[i], g, s)), a.round);
      rows[hidden + c] = value;
    }
    block.warp_barrier();
    return inverse;
  }

  // store(flow, channel, value) for the features of the flows that there are.
  template <class Store>
  TWINBENCH_DEVICE void over_features(const Stage& at, Store store) {
    const Layout& layout = a.layout;
    for (int c = simt::lane(block); c < layout.outputs; c += simt::kWarpSize) {
      FourFlows value = four_times(weights[layout.bias_out() + c]);
      accumulate(layout.hidden, weights + layout.weight_out() + c, layout.outputs, rows + at.hidden(1), false, value);
      for (int i = 0; i < kFlowsPerWarp; ++i)
        if (first + i < a.flows) store(first + i, c, value.of[i]);
    }
  }
};

// The packed weights to the beginning of dynamic shared memory, all threads together.
template <class Block, class Flows>
TWINBENCH_DEVICE void load_weights(Block& block, const Flows& a) {
  const int thread = simt::thread_rank(block), total = a.layout.total();
  const int wide = kernels::allows_four(0, a.weights) ? total / 4 : 0;
  auto fours = simt::dynamic_shared<kernels::Floats<4>>(block);
  auto weights = simt::dynamic_shared<float>(block);
  kernels::in_batches<kWeightBatch>(
      thread, kNeuronThreads, wide, [&](int i) { return kernels::load<4>(a.weights + 4 * i); },
      [&](int i, const kernels::Floats<4>& values) { fours[i] = values; });
  kernels::in_batches<kWeightBatch>(
      4 * wide + thread, kNeuronThreads, total, [&](int i) { return a.weights[i]; },
      [&](int i, float value) { weights[i] = value; });
}

}  // namespace twinbench::energy_flow::simple_neuron
