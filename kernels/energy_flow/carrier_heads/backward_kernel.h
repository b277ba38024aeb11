// The carrier heads' backward kernel: gradients of the first layers' sums, and all sums over flows.
//
// A block takes some flows and some of a row's columns: first a thread a flow for the scalar rules, then a thread a
// vector of columns, which keeps its weights and its sums over flows in registers and walks down the flows.
#pragma once

#include "kernels/energy_flow/carrier_heads/kernel.h"

namespace twinbench::energy_flow::carrier_heads {

// Grid: (plan.blocks, plan.chunks).
template <int kWidth>
struct Differentiate {
  static constexpr int kMaxThreads = kThreads;
  using Values = kernels::Floats<kWidth>;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BackwardArguments<float>& a) const {
    auto second = simt::shared_array<float, kGradients * kThreads>(block);
    const std::int64_t begin = std::int64_t{block.index().x} * a.plan.flows_per_block;
    const std::int64_t end = a.flows - begin < a.plan.flows_per_block ? a.flows : begin + a.plan.flows_per_block;
    const Own own = own_columns(block, a);
    Totals totals{};
    kernels::Floats<4> out_bias{};
    for (std::int64_t group = begin; group < end; group += kThreads) {
      const int count = end - group < kThreads ? static_cast<int>(end - group) : kThreads;
      finish_gradients(block, a, group, count, second, out_bias);
      block.barrier();
      walk(a, own, group, count, second, totals);
      block.barrier();  // before the next group's gradients
    }
    store_totals(block, a, own, totals);
    store_out_bias(block, a, out_bias);
  }

 private:
  static constexpr int kGradients = 5;  // of a flow: energy, displacement x y z, child
  static constexpr int kTerms = 4;      // sums over flows of a column: its gradient, and up to three weights'
  static constexpr int kBatch = 4;      // flows of a thread in flight

  // The vector of columns of a thread, and what it multiplies.
  struct Own {
    int column;  // its first
    int flow, flow_step;
    bool energy, displacement, any;  // neither: the child's
    Values bias, weight[3];
  };
  struct Totals {
    Values of[kTerms];
  };

  template <class Block>
  static TWINBENCH_DEVICE Own own_columns(Block& block, const BackwardArguments<float>& a) {
    const int chunk = a.plan.chunk, thread = simt::thread_rank(block), lanes = kThreads / chunk;
    Own own{};
    own.column = kWidth * (static_cast<int>(block.index().y) * chunk + thread % chunk);
    own.flow = thread / chunk;
    own.flow_step = lanes;
    own.any = own.flow < lanes && own.column < a.plan.trained;
    own.energy = own.any && own.column < a.columns.energy_width;
    own.displacement = own.any && !own.energy && own.column < a.columns.child();
    if (own.energy || own.displacement) own.bias = kernels::load<kWidth>(a.bias + own.column);
    if (own.energy) own.weight[0] = kernels::load<kWidth>(a.energy_out_weight + own.column);
    if (own.displacement) {
      const float* from = a.displacement_out_weight + (own.column - a.columns.displacement());
      TWINBENCH_UNROLL
      for (int k = 0; k < 3; ++k) own.weight[k] = kernels::load<kWidth>(from + k * a.columns.head_width);
    }
    return own;
  }

  // Gradients of the second layers' sums, as the products take them, of `count` flows in shared memory.
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void finish_gradients(Block& block, const BackwardArguments<float>& a, std::int64_t group,
                                                int count, Shared second, kernels::Floats<4>& out_bias) {
    auto displacement = simt::shared_array<float, 3 * kThreads, 0>(block);
    auto delta = simt::shared_array<float, 3 * kThreads, 1>(block);
    auto raw = simt::shared_array<float, 3 * kThreads, 2>(block);
    load_values(block, a.grad_displacement + 3 * group, displacement, 3 * count);
    load_values(block, a.grad_delta + 3 * group, delta, 3 * count);
    load_values(block, a.grad_raw + 3 * group, raw, 3 * count);
    block.barrier();
    const int row = simt::thread_rank(block);
    if (row >= count) return;
    const std::int64_t flow = group + row;
    const ResultGradients<float> given = {.energy = a.grad_energy[flow],
                                          .displacement = load_vector(displacement, row),
                                          .delta = load_vector(delta, row),
                                          .raw = load_vector(raw, row),
                                          .child_energy = a.grad_child_energy[flow]};
    SumGradients<float> grad =
        finish_backward(a.rule, load_sums(a.second_sums, a.flows, flow, a.rule.gate), a.spawn_count[flow], given);
    const kernels::Floats<4> exact = {{grad.energy, grad.displacement.x, grad.displacement.y, grad.displacement.z}};
    out_bias = kernels::map(out_bias, exact, [](float sum, float value) { return sum + value; });
    if (a.round) grad.round();
    second[row] = grad.energy;
    second[kThreads + row] = grad.displacement.x;
    second[2 * kThreads + row] = grad.displacement.y;
    second[3 * kThreads + row] = grad.displacement.z;
    second[4 * kThreads + row] = grad.child;
  }

  template <class Shared>
  static TWINBENCH_DEVICE void walk(const BackwardArguments<float>& a, const Own& own, std::int64_t group, int count,
                                    Shared second, Totals& totals) {
    if (!own.any) return;
    const std::int64_t start = group * a.columns.all + own.column;
    kernels::in_batches<kBatch>(
        own.flow, own.flow_step, count,
        [&](int row) { return kernels::load<kWidth>(a.sums + start + std::int64_t{row} * a.columns.all); },
        [&](int row, const Values& sums) {
          const Values gradient = through(a, own, second, row, sums, totals);
          kernels::store(a.gradient, start + std::int64_t{row} * a.columns.all, gradient);
        });
  }

  // The activations, as the second layers' products take them, and the slopes there.
  static TWINBENCH_DEVICE void activate(const BackwardArguments<float>& a, const Own& own, const Values& sums,
                                        Values& activated, Values& slope) {
    TWINBENCH_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      const kernels::GeluAndSlope both = kernels::short_gelu_and_slope(sums.of[i] + own.bias.of[i]);
      activated.of[i] = both.gelu;
      slope.of[i] = both.slope;
    }
    if (a.round) activated = kernels::rounded_to_bf16(activated);
  }

  // The gradient of the sums of one flow's columns, which is added to the totals.
  template <class Shared>
  static TWINBENCH_DEVICE Values through(const BackwardArguments<float>& a, const Own& own, Shared second, int row,
                                         const Values& sums, Totals& totals) {
    Values gradient{};
    Values activated{}, slope{};
    if (own.energy || own.displacement) activate(a, own, sums, activated, slope);
    if (own.energy) {
      const float energy = second[row];
      TWINBENCH_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        gradient.of[i] = energy * own.weight[0].of[i] * slope.of[i];
        totals.of[1].of[i] = kernels::multiply_add(energy, activated.of[i], totals.of[1].of[i]);
      }
    } else if (own.displacement) {
      const float along[] = {second[kThreads + row], second[2 * kThreads + row], second[3 * kThreads + row]};
      TWINBENCH_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        gradient.of[i] =
            (along[0] * own.weight[0].of[i] + along[1] * own.weight[1].of[i] + along[2] * own.weight[2].of[i]) *
            slope.of[i];
        TWINBENCH_UNROLL
        for (int k = 0; k < 3; ++k)
          totals.of[1 + k].of[i] = kernels::multiply_add(along[k], activated.of[i], totals.of[1 + k].of[i]);
      }
    } else if (own.column == a.columns.child()) {  // the columns after it are padding
      const float child = second[4 * kThreads + row];
      gradient.of[0] = child;
    }
    totals.of[0] = kernels::map(totals.of[0], gradient, [](float sum, float value) { return sum + value; });
    return gradient;
  }

  // The block's sums over flows of its columns, added in the order of its threads, to its row of partial sums.
  template <class Block>
  static TWINBENCH_DEVICE void store_totals(Block& block, const BackwardArguments<float>& a, const Own& own,
                                            const Totals& totals) {
    auto vectors = simt::dynamic_shared<Values>(block);
    auto values = simt::dynamic_shared<float>(block);
    const int chunk = a.plan.chunk, lanes = kThreads / chunk, columns = chunk * kWidth;
    const int first = static_cast<int>(block.index().y) * columns;
    float* partial = a.partial + std::int64_t{block.index().x} * a.plan.stride();
    TWINBENCH_UNROLL
    for (int term = 0; term < kTerms; ++term) {
      if (own.flow < lanes) vectors[simt::thread_rank(block)] = totals.of[term];
      block.barrier();
      const int from = term > 1 ? a.columns.displacement() : 0, to = term > 0 ? a.columns.child() : a.plan.trained;
      for (int c = simt::thread_rank(block); c < columns; c += kThreads) {
        if (first + c < from || first + c >= to) continue;
        float sum = 0.0f;
        for (int lane = 0; lane < lanes; ++lane) {
          const float value = values[lane * columns + c];
          sum += value;
        }
        // Weights: [energy | displacement x], then y, then z.
        partial[(term > 0 ? a.plan.trained + (term - 1) * a.columns.head_width : 0) + first + c] = sum;
      }
      block.barrier();
    }
  }

  template <class Block>
  static TWINBENCH_DEVICE void store_out_bias(Block& block, const BackwardArguments<float>& a,
                                              const kernels::Floats<4>& of_thread) {
    if (block.index().y > 0) return;  // whole blocks
    constexpr int kWarps = kThreads / simt::kWarpSize;
    auto warps = simt::shared_array<float, 4 * kWarps>(block);
    float sums[4] = {of_thread.of[0], of_thread.of[1], of_thread.of[2], of_thread.of[3]};
    float share = kernels::scattered_sums(block, sums);  // of value lane / 8
    TWINBENCH_UNROLL
    for (int lanes = 4; lanes > 0; lanes /= 2) share += block.shuffle_xor(share, lanes);
    const int lane = simt::lane(block), thread = simt::thread_rank(block);
    if (lane % 8 == 0) warps[lane / 8 * kWarps + simt::warp(block)] = share;
    block.barrier();
    if (thread >= 4) return;
    float sum = 0.0f;
    for (int warp = 0; warp < kWarps; ++warp) {
      const float value = warps[thread * kWarps + warp];
      sum += value;
    }
    a.partial[std::int64_t{block.index().x} * a.plan.stride() + a.plan.out_bias() + thread] = sum;
  }
};

// Rows of any length and start.
struct BackwardAnyWidth : Differentiate<1> {
  static std::int64_t documented_shared_bytes() { return backward_shared_bytes(1); }
};

struct Backward : Differentiate<4> {
  static std::int64_t documented_shared_bytes() { return backward_shared_bytes(4); }
};

}  // namespace twinbench::energy_flow::carrier_heads
