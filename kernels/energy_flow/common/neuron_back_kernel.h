// The simple neuron's way back (C06): recomputes and walks back four flows a warp; weight gradients without atomics. In
// the namespace of the component that specifies it; the whole backward pass takes it too.
#pragma once

#include "kernels/energy_flow/common/neuron_warp.h"

namespace twinbench::energy_flow::simple_neuron {

// What all threads of a block share while they add one group's products to the block's sums.
template <class Sums, class Rows>
struct GroupSums {
  Sums sums;  // shared, packed
  Rows rows;  // shared, the stages of all warps
  int stage_rows, thread;
  bool round;

  // sums[offset + k * out + c] += sum over flows of left row k times operand(right row c). The owner of an element is
  // always the same thread, and flows are added in ascending order.
  TWINBENCH_DEVICE void add_matrix(int offset, int in, int out, int left, int right) {
    for (int index = thread; index < in * out; index += kNeuronThreads) {
      float sum = sums[offset + index];
      for (int warp = 0; warp < kWarps; ++warp) {
        const FourFlows x = rows[warp * stage_rows + left + index / out];
        const FourFlows y = rows[warp * stage_rows + right + index % out];
        TWINBENCH_UNROLL
        for (int i = 0; i < kFlowsPerWarp; ++i) sum = multiply_add(x.of[i], operand(y.of[i], round), sum);
      }
      sums[offset + index] = sum;
    }
  }
  // sums[offset + c] += sum over flows of row c, times row factor + c if there is one (not -1).
  TWINBENCH_DEVICE void add_vector(int offset, int count, int row, int factor = -1) {
    for (int c = thread; c < count; c += kNeuronThreads) {
      float sum = sums[offset + c];
      for (int warp = 0; warp < kWarps; ++warp) {
        FourFlows x = rows[warp * stage_rows + row + c];
        if (factor >= 0) {
          const FourFlows y = rows[warp * stage_rows + factor + c];
          for (int i = 0; i < kFlowsPerWarp; ++i) x.of[i] *= y.of[i];
        }
        for (int i = 0; i < kFlowsPerWarp; ++i) sum += x.of[i];
      }
      sums[offset + c] = sum;
    }
  }
  TWINBENCH_DEVICE void add_layer(const Layout& layout, const Stage& at, int index) {
    const int width = layout.hidden;
    add_matrix(layout.weight(index), layout.inner(index), width, at.input(index), at.gradient(index));
    add_vector(layout.bias(index), width, at.gradient(index));
    add_vector(layout.gain(index), width, at.before(index), at.normal(index));
    add_vector(layout.shift(index), width, at.before(index));
  }
  TWINBENCH_DEVICE void add_group(const Layout& layout, const Stage& at) {
    add_matrix(layout.coordinate_weight(), 3, 3, at.position(), at.coordinates());
    add_vector(layout.coordinate_bias(), 3, at.coordinates());
    add_layer(layout, at, 0);
    add_layer(layout, at, 1);
    add_matrix(layout.weight_out(), layout.hidden, layout.outputs, at.hidden(1), at.features());
    add_vector(layout.bias_out(), layout.outputs, at.features());
  }
};

// Grid: backward_blocks(flows). Every thread takes part in every group, with zero gradients past the end. Given: where
// gradients come from and go to, for flows as Warp takes them, with `partial` [backward_blocks(flows), padded()]:
//   load_features(block, warp, at, values): the gradient of the features to the warp's rows, zeros past the last flow
//   store_energy(flows, flow, gradient), store_position(flows, first flow, element of [4, 3], gradient)
//   sum_before(flows, element of the block's row of `partial`): what its sum starts from
template <class Given>
struct WalkBack {
  static constexpr int kMaxThreads = kNeuronThreads;
  // Dynamic, for 32 hidden channels and 64 outputs.
  static std::int64_t documented_shared_bytes() { return backward_shared_bytes({32, 64}); }

  // From the gradient rows of the layer above (`from`, `inner` of them) to those before the gain and of the product.
  template <class Block, class Warp, class Matrix>
  TWINBENCH_DEVICE void layer_backward(Block& block, Warp& warp, const Stage& at, int index, int inner, Matrix matrix,
                                       int from, const FourFlows& inverse) const {
    const Layout& layout = warp.a.layout;
    const int width = layout.hidden, row = BackwardShared{layout}.row(), normal = at.normal(index),
              gradient = at.gradient(index);
    FourFlows mean{}, mean_normal{};
    for (int c = simt::lane(block); c < width; c += simt::kWarpSize) {
      FourFlows value{};
      accumulate(inner, matrix + c, row, warp.rows + from, warp.a.round, value);
      const FourFlows x = warp.rows[normal + c];
      const float g = warp.weights[layout.gain(index) + c], s = warp.weights[layout.shift(index) + c];
      for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] *= kernels::gelu_derivative(kernels::scaled(x.of[i], g, s));
      warp.rows[at.before(index) + c] = value;
      for (int i = 0; i < kFlowsPerWarp; ++i) {
        value.of[i] *= g;
        mean.of[i] += value.of[i];
        mean_normal.of[i] = multiply_add(value.of[i], x.of[i], mean_normal.of[i]);
      }
      warp.rows[gradient + c] = value;
    }
    mean = warp_sums(block, mean);
    mean_normal = warp_sums(block, mean_normal);
    const float count = static_cast<float>(width);
    for (int c = simt::lane(block); c < width; c += simt::kWarpSize) {
      FourFlows value = warp.rows[gradient + c];
      const FourFlows x = warp.rows[normal + c];
      for (int i = 0; i < kFlowsPerWarp; ++i)
        value.of[i] = kernels::layer_norm_input_gradient(value.of[i], mean.of[i] / count, x.of[i],
                                                         mean_normal.of[i] / count, inverse.of[i]);
      warp.rows[gradient + c] = value;
    }
    block.warp_barrier();
  }

  // Gradients of position and energy, from those of the first product. `values`: the warp's rows, value by value.
  template <class Block, class Warp, class Values>
  TWINBENCH_DEVICE void store_input_gradients(Block& block, Warp& warp, const Stage& at, Values values) const {
    const auto& a = warp.a;
    const int lane = simt::lane(block), width = a.layout.hidden;
    // Eight lanes a state channel, each with every eighth hidden one; groups start apart, so that banks differ.
    constexpr int kParts = simt::kWarpSize / Layout::kState;
    const int state = lane / kParts, rounds = (width + kParts - 1) / kParts;
    FourFlows value{};
    for (int r = 0, turn = state % rounds; r < rounds; ++r, turn = turn + 1 < rounds ? turn + 1 : 0) {
      const int c = turn * kParts + lane % kParts;
      if (c < width)
        accumulate(1, warp.weights + a.layout.weight(0) + state * width + c, 1, warp.rows + at.gradient(0) + c, a.round,
                   value);
    }
    TWINBENCH_UNROLL
    for (int lanes = kParts / 2; lanes > 0; lanes /= 2) {
      TWINBENCH_UNROLL
      for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] += block.shuffle_xor(value.of[i], lanes);
    }
    // Four lanes a state channel store one flow's sum each: 64 bytes at once.
    if (lane % kParts < kFlowsPerWarp) {
      const int i = lane % kParts;
      values[(at.coordinates() + state) * kFlowsPerWarp + i] = i == 0   ? value.of[0]
                                                               : i == 1 ? value.of[1]
                                                               : i == 2 ? value.of[2]
                                                                        : value.of[3];
    }
    if (lane / kParts == 3 && lane % kParts < kFlowsPerWarp && warp.first + lane % kParts < a.flows) {
      const int i = lane % kParts;
      Given::store_energy(a, warp.first + i,
                          i == 0   ? value.of[0]
                          : i == 1 ? value.of[1]
                          : i == 2 ? value.of[2]
                                   : value.of[3]);
    }
    block.warp_barrier();
    // A lane an element of the [4, 3] gradients, which lie one after the other.
    if (lane < 3 * kFlowsPerWarp && warp.first + lane / 3 < a.flows) {
      const int i = lane / 3, coordinate = lane % 3;
      float sum = 0.0f;
      for (int j = 0; j < 3; ++j) {
        const FourFlows x = warp.rows[at.coordinates() + j];
        const float of_flow = i == 0 ? x.of[0] : i == 1 ? x.of[1] : i == 2 ? x.of[2] : x.of[3];
        const float w = warp.weights[a.layout.coordinate_weight() + coordinate * 3 + j];
        sum = multiply_add(w, operand(of_flow, a.round), sum);
      }
      Given::store_position(a, warp.first, lane, sum);
    }
  }

  template <class Block, class Flows>
  TWINBENCH_DEVICE void walk(Block& block, const Flows& a) const {
    const Layout& layout = a.layout;
    const Stage at{layout.hidden, layout.outputs};
    const BackwardShared shared{layout};
    const int row = shared.row();
    const int thread = simt::thread_rank(block), width = layout.hidden;
    auto weights = simt::dynamic_shared<float>(block);
    auto sums = weights + shared.sums(), out_in_1 = weights + shared.weight_1(), out_in = weights + shared.weight_out();
    auto stages = simt::dynamic_shared<FourFlows>(block, shared.stages() * 4);
    load_weights(block, a);
    for (int i = thread; i < layout.total(); i += kNeuronThreads)
      sums[i] = Given::sum_before(a, static_cast<std::int64_t>(block.index().x) * layout.padded() + i);
    block.barrier();
    for (int i = thread; i < width * width; i += kNeuronThreads)
      out_in_1[i % width * row + i / width] = static_cast<float>(weights[layout.weight(1) + i]);
    for (int i = thread; i < width * layout.outputs; i += kNeuronThreads)
      out_in[i % layout.outputs * row + i / layout.outputs] = static_cast<float>(weights[layout.weight_out() + i]);
    block.barrier();

    auto rows = stages + simt::warp(block) * at.backward_rows();
    auto values = weights + (shared.stages() + simt::warp(block) * at.backward_rows() * kFlowsPerWarp);
    GroupSums<decltype(sums), decltype(stages)> sum{sums, stages, at.backward_rows(), thread, a.round};
    const std::int64_t step = static_cast<std::int64_t>(block.grid().x) * kFlowsPerBlock;
    for (std::int64_t group = block.index().x * std::int64_t{kFlowsPerBlock}; group < a.flows; group += step) {
      Warp<Block, Flows, decltype(weights), decltype(rows)> warp{
          block, a, weights, rows, values, group + simt::warp(block) * kFlowsPerWarp};
      warp.load(at);
      const FourFlows inverse_0 = warp.layer(at, 0, true), inverse_1 = warp.layer(at, 1, true);
      Given::load_features(block, warp, at, values);
      layer_backward(block, warp, at, 1, layout.outputs, out_in, at.features(), inverse_1);
      layer_backward(block, warp, at, 0, width, out_in_1, at.gradient(1), inverse_0);
      store_input_gradients(block, warp, at, values);
      block.barrier();
      sum.add_group(layout, at);
      block.barrier();
    }
    for (int i = thread; i < layout.total(); i += kNeuronThreads)
      a.partial[static_cast<std::int64_t>(block.index().x) * layout.padded() + i] = sums[i];
  }
};

}  // namespace twinbench::energy_flow::simple_neuron
