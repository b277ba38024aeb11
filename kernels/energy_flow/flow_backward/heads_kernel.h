// Back through the rules of a step and the heads' second layers, to the gradients of the first layers' sums, with the
// sums over rows that the second layers' parameters need. A block takes 32 rows at a time: first a lane a row for the
// scalar rules, then a warp a row, a lane a vector of columns, which keeps its weights and its sums in registers.
#pragma once

#include "kernels/common/vectors.h"
#include "kernels/common/warp_sums.h"
#include "kernels/energy_flow/common/heads_gradients.h"
#include "kernels/energy_flow/flow_backward/arguments.h"

namespace twinbench::energy_flow::flow_backward {

namespace simt = kernels::simt;

// Sum over the children that a row's flow had in its step, in their order.
TWINBENCH_DEVICE float over_children(const StepRows& tape, std::int64_t row, const float* of_slots) {
  if (tape.requests[row] == 0) return 0.0f;
  const std::int32_t first = tape.first_child[row], children = tape.children[row];
  float sum = 0.0f;
  for (std::int32_t child = first; child < first + children; ++child) sum += of_slots[child];
  return sum;
}

// Grid: (column_blocks(rows that there can be), chunks of 32 vectors). kRound: in bf16 mode; gradients are stored as
// operands, and as what they were they are summed here, for the first layers' biases.
template <int kWidth, bool kRound = false>
struct HeadColumnsAs {
  static constexpr int kMaxThreads = kColumnThreads;
  // Dynamic: a vector of every thread.
  static std::int64_t documented_shared_bytes() { return std::int64_t{4} * kColumnThreads * kWidth; }
  using Values = kernels::Floats<kWidth>;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const HeadsBackArguments& a) const {
    auto second = simt::shared_array<float, kSecond * kRowsAtOnce>(block);
    const std::int32_t rows = *a.tape.total;
    const std::int64_t begin = std::int64_t{block.index().x} * kRowsAtOnce;
    if (begin >= rows && !a.steps.first) return;  // the whole block
    const Own own = own_columns(block, a);
    Totals totals{};
    kernels::Floats<4> out_bias{};
    const std::int64_t step = std::int64_t{block.grid().x} * kRowsAtOnce;
    for (std::int64_t group = begin; group < rows; group += step) {
      const int count = rows - group < kRowsAtOnce ? static_cast<int>(rows - group) : kRowsAtOnce;
      const int row = simt::thread_rank(block);
      if (row < count) finish(a, group + row, row, second, out_bias);
      block.barrier();
      walk(block, a, own, group, count, second, totals);
      block.barrier();  // before the next group's gradients
    }
    store_totals(block, a, totals);
    store_out_bias(block, a, out_bias);
  }

 private:
  static constexpr int kSecond = 5;  // gradients of a row's second sums: energy, displacement x y z, child
  // Sums over rows of a column: of its weights, at most three, and of the gradient itself.
  static constexpr int kTerms = kRound ? 4 : 3, kOwnTerm = 3;
  static constexpr int kBatch = 4;  // rows of a warp in flight
  static constexpr int kWarps = kColumnThreads / simt::kWarpSize;

  struct Own {
    int column;                      // its first
    bool energy, displacement, any;  // neither: the child's
    Values bias, weight[3];
  };
  struct Totals {
    Values of[kTerms];
  };

  template <class Block>
  static TWINBENCH_DEVICE Own own_columns(Block& block, const HeadsBackArguments& a) {
    Own own{};
    own.column = kWidth * (static_cast<int>(block.index().y) * simt::kWarpSize + simt::lane(block));
    own.any = own.column < a.layout.trained;
    own.energy = own.column < a.columns.energy_width;
    own.displacement = !own.energy && own.column < a.columns.child();
    if (own.energy || own.displacement) own.bias = kernels::load<kWidth>(a.bias + own.column);
    if (own.energy) own.weight[0] = kernels::load<kWidth>(a.energy_out_weight + own.column);
    if (own.displacement) {
      const float* const from = a.displacement_out_weight + (own.column - a.columns.displacement());
      TWINBENCH_UNROLL
      for (int k = 0; k < 3; ++k) own.weight[k] = kernels::load<kWidth>(from + k * a.columns.head_width);
    }
    return own;
  }

  template <class Shared>
  static TWINBENCH_DEVICE void finish(const HeadsBackArguments& a, std::int64_t row, int place, Shared second,
                                      kernels::Floats<4>& out_bias) {
    const StepRows& tape = a.tape;
    const std::int64_t slots = a.steps.slots;
    const std::int32_t slot = tape.slot[row];
    const carrier_heads::Sums<float> sums = {
        .energy = tape.second_sums[row],
        .displacement = {tape.second_sums[slots + row], tape.second_sums[2 * slots + row],
                         tape.second_sums[3 * slots + row]},
        .gate = 0.0f,
        .child = tape.second_sums[4 * slots + row]};
    const carrier_heads::SumGradients<float> grad = carrier_heads::finish_backward(
        carrier_heads::with_scale(a.rule, a.scale), sums, tape.requests[row],
        {.energy = a.adjoints.energy[slot],
         .displacement = {0.0f, 0.0f, 0.0f},
         .delta = {tape.slope_x[row] * a.adjoints.x[slot], tape.slope_y[row] * a.adjoints.y[slot], a.adjoints.z[slot]},
         .raw = {0.0f, 0.0f, 0.0f},
         .child_energy = over_children(tape, row, a.adjoints.energy)});
    const kernels::Floats<4> exact = {{grad.energy, grad.displacement.x, grad.displacement.y, grad.displacement.z}};
    out_bias = kernels::map(out_bias, exact, [](float sum, float value) { return sum + value; });
    TWINBENCH_UNROLL
    for (int i = 0; i < 4; ++i) second[i * kRowsAtOnce + place] = kernels::operand(exact.of[i], kRound);
    second[4 * kRowsAtOnce + place] = grad.child;
  }

  template <class Block, class Shared>
  static TWINBENCH_DEVICE void walk(Block& block, const HeadsBackArguments& a, const Own& own, std::int64_t group,
                                    int count, Shared second, Totals& totals) {
    if (!own.any) return;
    const float* const sums = a.sums + group * a.columns.all + own.column;
    float* const gradient = a.gradient + group * a.gradient_stride + own.column;
    kernels::in_batches<kBatch>(
        simt::warp(block), kWarps, count,
        [&](int row) { return kernels::load<kWidth>(sums + std::int64_t{row} * a.columns.all); },
        [&](int row, const Values& of_row) {
          kernels::store(gradient + std::int64_t{row} * a.gradient_stride,
                         through(a, own, second, row, of_row, totals));
        });
  }

  // The gradient of the sums of one row's columns; what the row adds to its weights' is added to the totals.
  template <class Shared>
  static TWINBENCH_DEVICE Values through(const HeadsBackArguments& a, const Own& own, Shared second, int row,
                                         const Values& sums, Totals& totals) {
    Values gradient{};
    if (own.energy) {
      const float energy = second[row];
      TWINBENCH_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        const float x = sums.of[i] + own.bias.of[i];
        gradient.of[i] = energy * own.weight[0].of[i] * kernels::gelu_derivative(x);
        totals.of[0].of[i] =
            kernels::multiply_add(energy, kernels::operand(kernels::gelu(x), kRound), totals.of[0].of[i]);
      }
    } else if (own.displacement) {
      const float along[] = {second[kRowsAtOnce + row], second[2 * kRowsAtOnce + row], second[3 * kRowsAtOnce + row]};
      TWINBENCH_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        const float x = sums.of[i] + own.bias.of[i], activated = kernels::operand(kernels::gelu(x), kRound);
        gradient.of[i] =
            (along[0] * own.weight[0].of[i] + along[1] * own.weight[1].of[i] + along[2] * own.weight[2].of[i]) *
            kernels::gelu_derivative(x);
        TWINBENCH_UNROLL
        for (int k = 0; k < 3; ++k) totals.of[k].of[i] = kernels::multiply_add(along[k], activated, totals.of[k].of[i]);
      }
    } else if (own.column == a.columns.child()) {  // the columns after it are padding
      const float child = second[4 * kRowsAtOnce + row];
      gradient.of[0] = child;
    }
    if constexpr (kRound) {
      totals.of[kOwnTerm] =
          kernels::map(totals.of[kOwnTerm], gradient, [](float sum, float value) { return sum + value; });
      gradient = kernels::rounded_to_bf16(gradient);
    }
    return gradient;
  }

  // What the block has added in this step to its row of sums, which the first step begins.
  static TWINBENCH_DEVICE void add(const HeadsBackArguments& a, float* sum, float value) {
    *sum = a.steps.first ? value : *sum + value;
  }

  // Sums of the block's warps, in their order.
  template <class Block>
  static TWINBENCH_DEVICE void store_totals(Block& block, const HeadsBackArguments& a, const Totals& totals) {
    auto vectors = simt::dynamic_shared<Values>(block);
    auto values = simt::dynamic_shared<float>(block);
    constexpr int kColumns = simt::kWarpSize * kWidth;
    const int first = static_cast<int>(block.index().y) * kColumns;
    float* const partial = a.partial + std::int64_t{block.index().x} * a.layout.stride();
    TWINBENCH_UNROLL
    for (int term = 0; term < kTerms; ++term) {
      vectors[simt::thread_rank(block)] = totals.of[term];
      block.barrier();
      const int c = simt::thread_rank(block);
      const bool own = term == kOwnTerm;  // all of a column's terms but this one are of weights
      if (c < kColumns && first + c >= (term > 0 && !own ? a.columns.displacement() : 0) &&
          first + c < (own ? a.layout.trained : a.columns.child())) {
        float sum = 0.0f;
        for (int warp = 0; warp < kWarps; ++warp) {
          const float value = values[warp * kColumns + c];
          sum += value;
        }
        // [energy | displacement x], then y, then z, then the first layers' biases.
        const int start = own ? a.layout.first_bias() : term * a.columns.head_width;
        add(a, partial + start + first + c, sum);
      }
      block.barrier();
    }
  }

  template <class Block>
  static TWINBENCH_DEVICE void store_out_bias(Block& block, const HeadsBackArguments& a,
                                              const kernels::Floats<4>& of_thread) {
    if (block.index().y > 0 || simt::warp(block) > 0) return;  // the first warp took the rows
    const kernels::Floats<4> sums = kernels::warp_sums(block, of_thread);
    float* const partial = a.partial + std::int64_t{block.index().x} * a.layout.stride() + a.layout.out_bias();
    const int lane = simt::lane(block);
    const float own = lane == 0 ? sums.of[0] : lane == 1 ? sums.of[1] : lane == 2 ? sums.of[2] : sums.of[3];
    if (lane < 4) add(a, partial + lane, own);
  }
};

// Rows of any length and start.
struct HeadColumnsAnyWidth : HeadColumnsAs<1> {};

struct HeadColumns : HeadColumnsAs<4> {};

struct RoundedHeadColumnsAnyWidth : HeadColumnsAs<1, true> {};

struct RoundedHeadColumns : HeadColumnsAs<4, true> {};

}  // namespace twinbench::energy_flow::flow_backward
