// The simple neuron's backward kernels: recompute and walk back four flows a warp, sum weight gradients without atomics.
#pragma once

#include "kernels/energy_flow/simple_neuron/kernel.h"

namespace twinbench::energy_flow::simple_neuron {


// Dynamic shared memory, in floats: packed weights, packed sums, weight_2 and weight_3 as [out][in] (so that lanes that own
// inputs read neighbours), then the stages of all warps.
struct NeuronBackwardShared {
  SimpleNeuronLayout layout;
  TWINBENCH_HOST_DEVICE int sums() const { return padded_weights(layout); }
  TWINBENCH_HOST_DEVICE int weight_2() const { return 2 * padded_weights(layout); }
  TWINBENCH_HOST_DEVICE int weight_3() const { return weight_2() + layout.hidden * layout.hidden; }
  TWINBENCH_HOST_DEVICE int stages() const { return (weight_3() + layout.hidden * layout.outputs + 3) / 4 * 4; }
};

// What all threads of a block share while they add one group's products to the block's sums.
template <class Sums, class Rows>
struct NeuronSums {
  Sums sums;   // shared, packed
  Rows rows;   // shared, the stages of all warps
  int stage_rows, thread;
  bool round;

  // sums[offset + k * out + c] += sum over flows of left row k times operand(right row c). The owner of an element is
  // always the same thread, and flows are added in ascending order.
  TWINBENCH_DEVICE void add_matrix(int offset, int in, int out, int left, int right) {
    for (int index = thread; index < in * out; index += kNeuronThreads) {
      float sum = sums[offset + index];
      for (int warp = 0; warp < kNeuronThreads / simt::kWarpSize; ++warp) {
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
      for (int warp = 0; warp < kNeuronThreads / simt::kWarpSize; ++warp) {
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
};

// Grid: simple_neuron_backward_blocks(flows). Every thread takes part in every group, with zero gradients past the end.
struct SimpleNeuronBackward {
  static constexpr int kMaxThreads = kNeuronThreads;
  static std::int64_t documented_shared_bytes();  // dynamic, for 32 hidden channels and 64 outputs

  // From the gradient rows of the layer above (`from`, `inner` of them) to those before the gain and of the product.
  template <class Block, class Warp, class Matrix>
  TWINBENCH_DEVICE void layer_backward(Block& block, Warp& warp, int inner, Matrix matrix, int from, int normal, int gain,
                                       int shift, const FourFlows& inverse, int before, int gradient) const {
    const int width = warp.a.layout.hidden;
    FourFlows mean{}, mean_normal{};
    for (int c = simt::lane(block); c < width; c += simt::kWarpSize) {
      FourFlows value{};
      accumulate(inner, matrix + c, width, warp.rows + from, warp.a.round, value);
      const FourFlows x = warp.rows[normal + c];
      const float g = warp.weights[gain + c], s = warp.weights[shift + c];
      for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] *= gelu_derivative(multiply_add(x.of[i], g, s));
      warp.rows[before + c] = value;
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
        value.of[i] = layer_norm_input_gradient(value.of[i], mean.of[i] / count, x.of[i], mean_normal.of[i] / count,
                                                inverse.of[i]);
      warp.rows[gradient + c] = value;
    }
    block.warp_barrier();
  }

  // Gradients of position and energy, from those of the first product.
  template <class Block, class Warp>
  TWINBENCH_DEVICE void store_input_gradients(Block& block, Warp& warp, const NeuronStage& at) const {
    const SimpleNeuronArguments& a = warp.a;
    const int lane = simt::lane(block);
    if (lane < SimpleNeuronLayout::kState) {
      FourFlows value{};
      accumulate(a.layout.hidden, warp.weights + a.layout.weight_1() + lane * a.layout.hidden, 1,
                 warp.rows + at.gradient_1(), a.round, value);
      warp.rows[at.coordinates() + lane] = value;
      for (int i = 0; lane == 3 && i < kFlowsPerWarp; ++i)
        if (warp.first + i < a.flows) a.grad_energy[warp.first + i] = value.of[i];
    }
    block.warp_barrier();
    if (lane < 3) {
      FourFlows value{};
      accumulate(3, warp.weights + a.layout.coordinate_weight() + lane * 3, 1, warp.rows + at.coordinates(), a.round,
                 value);
      for (int i = 0; i < kFlowsPerWarp; ++i)
        if (warp.first + i < a.flows) a.grad_position[(warp.first + i) * 3 + lane] = value.of[i];
    }
  }

  template <class Block, class Warp>
  TWINBENCH_DEVICE void load_gradient(Block& block, Warp& warp, const NeuronStage& at) const {
    const StridedRows& from = warp.a.grad_features;
    for (int c = simt::lane(block); c < warp.a.layout.outputs; c += simt::kWarpSize) {
      FourFlows value{};
      for (int i = 0; i < kFlowsPerWarp; ++i)
        if (warp.first + i < warp.a.flows)
          value.of[i] = from.data[(warp.first + i) * from.row_stride + c * from.column_stride];
      warp.rows[at.features() + c] = value;
    }
    block.warp_barrier();
  }

  template <class Sums>
  TWINBENCH_DEVICE void add_group(Sums& sum, const SimpleNeuronLayout& layout, const NeuronStage& at) const {
    const int width = layout.hidden;
    sum.add_matrix(layout.coordinate_weight(), 3, 3, at.position(), at.coordinates());
    sum.add_vector(layout.coordinate_bias(), 3, at.coordinates());
    sum.add_matrix(layout.weight_1(), 4, width, at.state(), at.gradient_1());
    sum.add_vector(layout.bias_1(), width, at.gradient_1());
    sum.add_vector(layout.gain_1(), width, at.before_1(), at.normal_1());
    sum.add_vector(layout.shift_1(), width, at.before_1());
    sum.add_matrix(layout.weight_2(), width, width, at.hidden_1(), at.gradient_2());
    sum.add_vector(layout.bias_2(), width, at.gradient_2());
    sum.add_vector(layout.gain_2(), width, at.before_2(), at.normal_2());
    sum.add_vector(layout.shift_2(), width, at.before_2());
    sum.add_matrix(layout.weight_3(), width, layout.outputs, at.hidden_2(), at.features());
    sum.add_vector(layout.bias_3(), layout.outputs, at.features());
  }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SimpleNeuronArguments& a) const {
    const SimpleNeuronLayout& layout = a.layout;
    const NeuronStage at{layout.hidden, layout.outputs};
    const NeuronBackwardShared shared{layout};
    const int thread = simt::thread_rank(block), width = layout.hidden;
    auto weights = simt::dynamic_shared<float>(block);
    auto sums = weights + shared.sums(), out_in_2 = weights + shared.weight_2(), out_in_3 = weights + shared.weight_3();
    auto stages = simt::dynamic_shared<FourFlows>(block, shared.stages() * 4);
    for (int i = thread; i < layout.total(); i += kNeuronThreads) {
      weights[i] = a.weights[i];
      sums[i] = 0.0f;
    }
    for (int i = thread; i < width * width; i += kNeuronThreads)
      out_in_2[i % width * width + i / width] = a.weights[layout.weight_2() + i];
    for (int i = thread; i < width * layout.outputs; i += kNeuronThreads)
      out_in_3[i % layout.outputs * width + i / layout.outputs] = a.weights[layout.weight_3() + i];
    block.barrier();

    auto rows = stages + simt::warp(block) * at.backward_rows();
    NeuronSums<decltype(sums), decltype(stages)> sum{sums, stages, at.backward_rows(), thread, a.round};
    const std::int64_t step = static_cast<std::int64_t>(block.grid().x) * kFlowsPerBlock;
    for (std::int64_t group = static_cast<std::int64_t>(block.index().x) * kFlowsPerBlock; group < a.flows; group += step) {
      NeuronWarp<Block, decltype(weights), decltype(rows)> warp{block, a, weights, rows,
                                                                group + simt::warp(block) * kFlowsPerWarp};
      warp.load(at);
      const FourFlows inverse_1 =
          warp.layer(SimpleNeuronLayout::kState, layout.weight_1(), at.state(), at.hidden_1(), at.normal_1());
      const FourFlows inverse_2 = warp.layer(width, layout.weight_2(), at.hidden_1(), at.hidden_2(), at.normal_2());
      load_gradient(block, warp, at);
      layer_backward(block, warp, layout.outputs, out_in_3, at.features(), at.normal_2(), layout.gain_2(),
                     layout.shift_2(), inverse_2, at.before_2(), at.gradient_2());
      layer_backward(block, warp, width, out_in_2, at.gradient_2(), at.normal_1(), layout.gain_1(), layout.shift_1(),
                     inverse_1, at.before_1(), at.gradient_1());
      store_input_gradients(block, warp, at);
      block.barrier();
      add_group(sum, layout, at);
      block.barrier();
    }
    for (int i = thread; i < layout.total(); i += kNeuronThreads)
      a.partial[static_cast<std::int64_t>(block.index().x) * layout.total() + i] = sums[i];
  }
};

// grad_weights[i] = sum of partial[b][i] over the blocks b, ascending. A thread an element.
struct SimpleNeuronSum {
  static constexpr int kMaxThreads = kNeuronThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SimpleNeuronArguments& a, std::int64_t blocks) const {
    const std::int64_t i = simt::global_index(block), total = a.layout.total();
    if (i >= total) return;
    float sum = 0.0f;
    for (std::int64_t b = 0; b < blocks; ++b) sum += a.partial[b * total + i];
    a.grad_weights[i] = sum;
  }
};

// ---- sizes that the launcher and the host test share ----------------------------------------------------------------

inline std::int64_t neuron_forward_shared_bytes(const SimpleNeuronLayout& layout) {
  const NeuronStage at{layout.hidden, layout.outputs};
  return std::int64_t{4} * padded_weights(layout) + std::int64_t{16} * at.forward_rows() * (kNeuronThreads / simt::kWarpSize);
}
inline std::int64_t neuron_backward_shared_bytes(const SimpleNeuronLayout& layout) {
  const NeuronStage at{layout.hidden, layout.outputs};
  return std::int64_t{4} * NeuronBackwardShared{layout}.stages() +
         std::int64_t{16} * at.backward_rows() * (kNeuronThreads / simt::kWarpSize);
}
inline std::int64_t SimpleNeuronForward::documented_shared_bytes() { return neuron_forward_shared_bytes({32, 64}); }
inline std::int64_t SimpleNeuronBackward::documented_shared_bytes() { return neuron_backward_shared_bytes({32, 64}); }
inline std::int64_t neuron_groups(std::int64_t flows) { return (flows + kFlowsPerBlock - 1) / kFlowsPerBlock; }

}  // namespace twinbench::energy_flow::simple_neuron
