// The way back of sem.selective_scan: a batch item's group a block, tiles of steps from the last to the first. Every
// tile's states are computed again from the one before it, which the pass for Purpose::kStarts has left.
#pragma once

#include "kernels/common/warp_sums.h"
#include "kernels/sem/selective_scan/kernel.h"

namespace twinbench::sem::selective_scan {

constexpr int kWarps = kThreads / simt::kWarpSize;
// Of the [kind and step][state] matrix of shares in the steps' gradients: eight rows of four words meet all banks.
constexpr int kShareRow = kSlab + 4;

// project_out's arrays (states: the gradients of projected inputs), and more.
struct BackLayout : Layout {
  int gradient, exponentials, of_steps, of_logits, of_weights, of_rates, kept, shares;

  TWINBENCH_HOST_DEVICE static BackLayout of(const Shape& shape, int steps) {
    BackLayout at{};
    static_cast<Layout&>(at) = Layout::of(shape, steps, true);
    at.gradient = at.end;
    at.exponentials = at.gradient + 2 * steps * input_row(shape.width);
    at.of_steps = at.exponentials + 2 * steps;
    at.of_logits = at.of_steps + kWarps * 2 * steps;
    at.of_weights = at.of_logits + 2 * steps;
    at.of_rates = at.of_weights + 2 * weight_row(shape.width);
    at.kept = at.of_rates + 2 * whole_slabs(shape.states);
    at.shares = at.kept + 2 * steps * kRow;
    at.end = at.shares + (shape.at_once() ? 2 * steps * kShareRow : 0);
    return at;
  }
};

template <bool kAtOnce>
struct BackAs {
  static constexpr int kMaxThreads = kThreads;
  static constexpr int kSteps = kAtOnce ? 16 : 8;

  static std::int64_t documented_shared_bytes() {
    const Shape at_once{.width = kChannels, .states = kSlab}, more{.width = 2 * kChannels, .states = 2 * kSlab};
    return 4 * std::int64_t{BackLayout::of(kAtOnce ? at_once : more, kSteps).end};
  }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BackwardArguments& b) const {
    const ScanArguments& a = b.scan;
    const Shape& shape = a.shape;
    const std::int64_t item = block.index().x;
    const BackLayout at = BackLayout::of(shape, kSteps);
    const int thread = simt::thread_rank(block), all = whole_slabs(shape.states);
    load_parameters(block, a, item, at);
    for (int n = thread; n < 2 * all; n += kThreads) {
      floats_at(block, at.last)[n] = 0.0f;
      floats_at(block, at.of_rates)[n] = 0.0f;
    }
    for (int k = thread; k < 2 * Layout::weight_row(shape.width); k += kThreads)
      floats_at(block, at.of_weights)[k] = 0.0f;
    Rows rows{};
    if constexpr (kAtOnce) {
      load_out_of(rows.out_of, a, thread, 0);
      load_projection(block, a, at, 0, 0);
    }
    float of_bias = 0.0f;  // of the thread's step and kind of logit
    const int tiles = shape.tiles();
    for (int tile = tiles - 1; tile >= 0; --tile) {
      const int first = tile * kSteps, count = shape.steps - first < kSteps ? shape.steps - first : kSteps;
      block.barrier();
      load_tile<kSteps>(block, shape, a.input, item, first, count, at.input);
      load_tile<kSteps>(block, shape, b.grad_output, item, first, count, at.gradient);
      block.barrier();
      auto exponentials = floats_at(block, at.exponentials);
      find_steps<kSteps>(block, a, at, [&](int j, int t, float value) { exponentials[j * kSteps + t] = value; });
      block.barrier();
      for (int slab = 0; slab < all; slab += kSlab) {
        Weights weights;
        project_in<kSteps, kAtOnce>(block, a, at, slab, weights, [&](Weights& row, int channel) {
          if constexpr (kAtOnce)
            take_into(row, floats_at(block, at.projection), thread);
          else
            load_into(row, a, slab + thread, channel);
        });
        const Number<float> start = scan_again(block, a, at, slab, item, tile, count);
        scan_back(block, a, at, slab, start, count, rows.out_of);
        add_outer_products(block, b, at, slab, item, tile == tiles - 1, count, rows);
        block.barrier();
        for (int channel = 0; channel < shape.width; channel += kChannels) {
          if constexpr (!kAtOnce) {
            load_projection(block, a, at, slab, channel);
            block.barrier();
          }
          project_out<kSteps, true>(block, shape, at, slab, channel);
          if constexpr (!kAtOnce) block.barrier();
        }
      }
      block.barrier();
      of_bias += find_logits(block, at, count);
      block.barrier();
      store_input_gradient(block, b, at, item, first, count);
      add_weights(block, shape, at, count);
    }
    block.barrier();
    store_shares(block, b, at, item, rows, of_bias);
  }

 private:
  // A state's column of the output projection, and the sums of its share in the gradients: of_out_of, and the conjugate
  // of of_into.
  struct Rows {
    Weights out_of, of_into, of_out_of;
  };

  // The input projection's row from where project_out has it: fewer registers are taken for long.
  template <class Shared>
  TWINBENCH_DEVICE static void take_into(Weights& weights, Shared projection, int n) {
    TWINBENCH_UNROLL
    for (int p = 0; p < kChannels; ++p) {
      const float real = projection[p * kRow + n], imaginary = projection[(kChannels + p) * kRow + n];
      weights.real[p] = real, weights.imaginary[p] = imaginary;
    }
  }
  TWINBENCH_DEVICE static void load_out_of(Weights& weights, const ScanArguments& a, int n, int channel) {
    load_weights(weights, a.output_projection + std::int64_t{channel} * a.shape.states + n, a.shape.states,
                 std::int64_t{a.shape.states} * a.shape.width, n < a.shape.states ? a.shape.width - channel : 0);
  }

  // The input projection as project_out takes it.
  template <class Block>
  TWINBENCH_DEVICE static void load_projection(Block& block, const ScanArguments& a, const Layout& at, int slab,
                                               int channel) {
    auto to = floats_at(block, at.projection);
    const int thread = simt::thread_rank(block), n = slab + thread;
    if (thread >= work_of(a.shape, slab)) return;
    TWINBENCH_UNROLL
    for (int p = 0; p < 2 * kChannels; ++p) {
      const int column = channel + p % kChannels;
      const bool there = column < a.shape.width && n < a.shape.states;
      const std::int64_t from = (std::int64_t{p / kChannels} * a.shape.states + n) * a.shape.width + column;
      to[p * kRow + thread] = there ? a.input_projection[from] : 0.0f;
    }
  }

  // The tile's states, kept; returns the one before it.
  template <class Block>
  TWINBENCH_DEVICE static Number<float> scan_again(Block& block, const ScanArguments& a, const BackLayout& at, int slab,
                                                   std::int64_t item, int tile, int count) {
    auto projected = floats_at(block, at.states);
    auto kept = floats_at(block, at.kept);
    auto steps = floats_at(block, at.steps);
    auto rates = floats_at(block, at.rates);
    const int thread = simt::thread_rank(block), n = slab + thread, states = a.shape.states;
    const float rate = rates[n], phase = rates[whole_slabs(states) + n];
    Number<float> start{0.0f, 0.0f};
    if (thread >= work_of(a.shape, slab)) return start;
    if (n < states) {
      const float* const from = a.starts + (item * a.shape.tiles() + tile) * 2 * states + n;
      start = {from[0], from[states]};
    }
    Number<float> state = start;
    TWINBENCH_ROLLED
    for (int t = 0; t < kSteps; ++t) {
      if (t < count) {
        const float length = steps[t], turn = steps[kSteps + t];
        const float real = projected[t * kRow + thread], imaginary = projected[(kSteps + t) * kRow + thread];
        state = next_state(decay_of(length, rate, turn, phase), state, {real, imaginary}, length);
      }
      kept[t * kRow + thread] = state.real;
      kept[(kSteps + t) * kRow + thread] = state.imaginary;
    }
    return start;
  }

  // From the gradients of the outputs to those of projected inputs, steps, rates and phases.
  template <class Block>
  TWINBENCH_DEVICE static void scan_back(Block& block, const ScanArguments& a, const BackLayout& at, int slab,
                                         Number<float> start, int count, Weights& out_of) {
    auto gradient = vectors_at(block, at.gradient);
    auto projected = floats_at(block, at.states);
    auto kept = floats_at(block, at.kept);
    auto steps = floats_at(block, at.steps);
    auto rates = floats_at(block, at.rates);
    auto last = floats_at(block, at.last);
    auto of_rates = floats_at(block, at.of_rates);
    const int thread = simt::thread_rank(block), n = slab + thread, all = whole_slabs(a.shape.states);
    const int row = input_row(a.shape.width) / 4;
    const float rate = rates[n], phase = rates[all + n], last_real = last[n], last_imaginary = last[all + n];
    float of_rate = of_rates[n], of_phase = of_rates[all + n];
    const int steps_with_work = thread < work_of(a.shape, slab) ? count : 0;
    Number<float> carried{last_real, last_imaginary};
    TWINBENCH_ROLLED
    for (int t = kSteps - 1; t >= 0; --t) {
      float sums[2] = {0.0f, 0.0f};  // of the step's length and turn
      if (t < steps_with_work) {
        Number<float> of_state = carried;
        for (int channel = 0; channel < a.shape.width; channel += kChannels) {
          if constexpr (!kAtOnce) load_out_of(out_of, a, n, channel);
          of_state =
              weighted_row<true>(out_of, gradient, t * row + channel / 4, (kSteps + t) * row + channel / 4, of_state);
        }
        const float length = steps[t], turn = steps[kSteps + t];
        const float real = projected[t * kRow + thread], imaginary = projected[(kSteps + t) * kRow + thread];
        Number<float> before = start;
        if (t > 0) {
          const float before_real = kept[(t - 1) * kRow + thread],
                      before_imaginary = kept[(kSteps + t - 1) * kRow + thread];
          before = {before_real, before_imaginary};
        }
        const StepGradient<float> step =
            step_gradient(of_state, decay_of(length, rate, turn, phase), before, {real, imaginary}, rate, phase);
        carried = step.carried;
        of_rate = kernels::multiply_add(-length, step.shrinking, of_rate);
        of_phase = kernels::multiply_add(turn, step.turning, of_phase);
        sums[0] = step.of_length, sums[1] = step.of_turn;
        projected[t * kRow + thread] = length * of_state.real;
        projected[(kSteps + t) * kRow + thread] = length * of_state.imaginary;
      }
      if constexpr (kAtOnce) {
        auto shares = floats_at(block, at.shares);
        shares[t * kShareRow + thread] = sums[0];
        shares[(kSteps + t) * kShareRow + thread] = sums[1];
      } else {
        add_over_lanes(block, at, slab, t, sums);
      }
    }
    if constexpr (kAtOnce) add_over_rows(block, at);
    last[n] = carried.real;
    last[all + n] = carried.imaginary;
    of_rates[n] = of_rate;
    of_rates[all + n] = of_phase;
  }

  // Half the lanes end with the sum of one kind, half with that of the other.
  template <class Block>
  TWINBENCH_DEVICE static void add_over_lanes(Block& block, const BackLayout& at, int slab, int t,
                                              const float (&sums)[2]) {
    auto of_steps = floats_at(block, at.of_steps);
    const float sum = simt::group_sum<simt::kWarpSize / 2>(block, kernels::scattered_sums(block, sums));
    const int lane = simt::lane(block), j = lane / 16;
    if (lane % 16 != 0) return;
    const int place = (simt::warp(block) * 2 + j) * kSteps + t;
    float before = 0.0f;
    if (slab > 0) before = of_steps[place];
    of_steps[place] = before + sum;
  }

  // The same of a whole tile, where its shares lie in shared memory: a lane adds up its warp's part of a row.
  template <class Block>
  TWINBENCH_DEVICE static void add_over_rows(Block& block, const BackLayout& at) {
    static_assert(!kAtOnce || 2 * kSteps == simt::kWarpSize, "a row a lane");
    constexpr int kVectors = simt::kWarpSize / 4;
    auto shares = vectors_at(block, at.shares);
    const int lane = simt::lane(block), warp = simt::warp(block);
    block.warp_barrier();
    float sum = 0.0f;
    TWINBENCH_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const Floats<4> four = shares[lane * (kShareRow / 4) + warp * kVectors + i];
      sum += (four.of[0] + four.of[1]) + (four.of[2] + four.of[3]);
    }
    floats_at(block, at.of_steps)[warp * 2 * kSteps + lane] = sum;
  }

  // sum += row * conj(number), channel by channel.
  template <class Shared>
  TWINBENCH_DEVICE static void add_row(Weights& sum, Shared rows, int real, int imaginary, Number<float> number) {
    TWINBENCH_UNROLL
    for (int i = 0; i < kChannels / 4; ++i) {
      const Floats<4> x = rows[real + i], y = rows[imaginary + i];
      TWINBENCH_UNROLL
      for (int k = 0; k < 4; ++k) {
        float &to_real = sum.real[4 * i + k], &to_imaginary = sum.imaginary[4 * i + k];
        to_real = kernels::multiply_add(x.of[k], number.real, to_real);
        to_real = kernels::multiply_add(y.of[k], number.imaginary, to_real);
        to_imaginary = kernels::multiply_add(y.of[k], number.real, to_imaginary);
        to_imaginary = kernels::multiply_add(-x.of[k], number.imaginary, to_imaginary);
      }
    }
  }

  // The tile's share in the projections' gradients. Of many channels or states the sums lie in global memory, each
  // touched by one thread alone.
  template <class Block>
  TWINBENCH_DEVICE static void add_outer_products(Block& block, const BackwardArguments& b, const BackLayout& at,
                                                  int slab, std::int64_t item, bool first, int count, Rows& rows) {
    auto input = vectors_at(block, at.input);
    auto gradient = vectors_at(block, at.gradient);
    auto projected = floats_at(block, at.states);
    auto kept = floats_at(block, at.kept);
    const Shape& shape = b.scan.shape;
    const int thread = simt::thread_rank(block), n = slab + thread, row = input_row(shape.width) / 4;
    if (thread >= work_of(shape, slab)) return;
    for (int channel = 0; channel < shape.width; channel += kChannels) {
      if (first) rows.of_into = {}, rows.of_out_of = {};
      if (!kAtOnce && !first) load_sums(rows, b, item, n, channel);
      TWINBENCH_ROLLED
      for (int t = 0; t < count; ++t) {
        const int real = t * row + channel / 4, imaginary = (kSteps + t) * row + channel / 4;
        const float of_real = projected[t * kRow + thread], of_imaginary = projected[(kSteps + t) * kRow + thread];
        const float state_real = kept[t * kRow + thread], state_imaginary = kept[(kSteps + t) * kRow + thread];
        add_row(rows.of_into, input, real, imaginary, {of_real, of_imaginary});
        add_row(rows.of_out_of, gradient, real, imaginary, {state_real, state_imaginary});
      }
      if constexpr (!kAtOnce) store_sums(rows, b, item, n, channel);
    }
  }

  // An item's row of shares: [2, states, width] of the input projection, [2, width, states] of the output projection,
  // [2, 2 * width] and [2] of the step sizes.
  TWINBENCH_DEVICE static float* shares_of(const BackwardArguments& b, std::int64_t item) {
    return b.of_shared + item * b.shared_stride;
  }
  template <class Visit>
  TWINBENCH_DEVICE static void each_sum(const Shape& shape, int n, int channel, Visit visit) {
    const std::int64_t product = std::int64_t{shape.width} * shape.states;
    TWINBENCH_UNROLL
    for (int p = 0; p < kChannels; ++p)
      if (n < shape.states && channel + p < shape.width)
        visit(p, std::int64_t{n} * shape.width + channel + p,
              2 * product + std::int64_t{channel + p} * shape.states + n, product);
  }
  TWINBENCH_DEVICE static void load_sums(Rows& rows, const BackwardArguments& b, std::int64_t item, int n,
                                         int channel) {
    const float* const from = shares_of(b, item);
    each_sum(b.scan.shape, n, channel, [&](int p, std::int64_t into, std::int64_t out_of, std::int64_t plane) {
      rows.of_into.real[p] = from[into], rows.of_into.imaginary[p] = -from[into + plane];
      rows.of_out_of.real[p] = from[out_of], rows.of_out_of.imaginary[p] = from[out_of + plane];
    });
  }
  TWINBENCH_DEVICE static void store_sums(const Rows& rows, const BackwardArguments& b, std::int64_t item, int n,
                                          int channel) {
    float* const to = shares_of(b, item);
    each_sum(b.scan.shape, n, channel, [&](int p, std::int64_t into, std::int64_t out_of, std::int64_t plane) {
      to[into] = rows.of_into.real[p], to[into + plane] = -rows.of_into.imaginary[p];
      to[out_of] = rows.of_out_of.real[p], to[out_of + plane] = rows.of_out_of.imaginary[p];
    });
  }

  // Gradients of the tile's logits; returns that of the thread's own, zero where it has none.
  template <class Block>
  TWINBENCH_DEVICE static float find_logits(Block& block, const BackLayout& at, int count) {
    const int thread = simt::thread_rank(block);
    if (thread >= 2 * kSteps) return 0.0f;
    auto of_steps = floats_at(block, at.of_steps);
    auto exponentials = floats_at(block, at.exponentials);
    float sum = 0.0f;
    TWINBENCH_UNROLL
    for (int warp = 0; warp < kWarps; ++warp) sum += of_steps[warp * 2 * kSteps + thread];
    const float exponential = exponentials[thread];
    const float of_logit = thread % kSteps < count ? logit_gradient(exponential, sum) : 0.0f;
    floats_at(block, at.of_logits)[thread] = of_logit;
    return of_logit;
  }

  template <class Block>
  TWINBENCH_DEVICE static void store_input_gradient(Block& block, const BackwardArguments& b, const BackLayout& at,
                                                    std::int64_t item, int first, int count) {
    const Shape& shape = b.scan.shape;
    auto out = floats_at(block, at.output);
    auto weights = floats_at(block, at.weights);
    auto of_logits = floats_at(block, at.of_logits);
    const int row_length = output_row(shape.width), weight_row = Layout::weight_row(shape.width);
    float* const start = b.grad_input + place_of(shape, item, first);
    const std::int64_t plane = plane_of(shape), step = std::int64_t{shape.groups} * shape.width;
    each_of_tile<kSteps>(block, shape.width, [&](int row, int channel) {
      const int t = row % kSteps, part = row / kSteps * whole_blocks(shape.width) + channel;
      const float of_length = of_logits[t], of_turn = of_logits[kSteps + t];
      const float length_weight = weights[part], turn_weight = weights[weight_row + part];
      float value = out[row / kSteps * output_plane(shape.width, kSteps) + t * row_length + channel];
      value = kernels::multiply_add(of_length, length_weight, value);
      value = kernels::multiply_add(of_turn, turn_weight, value);
      if (t < count) start[row / kSteps * plane + t * step + channel] = value;
    });
  }

  // The tile's share in the gradient of the step sizes' weights.
  template <class Block>
  TWINBENCH_DEVICE static void add_weights(Block& block, const Shape& shape, const BackLayout& at, int count) {
    auto input = floats_at(block, at.input);
    auto of_logits = floats_at(block, at.of_logits);
    auto sums = floats_at(block, at.of_weights);
    const int blocks = whole_blocks(shape.width), row_length = input_row(shape.width);
    for (int i = simt::thread_rank(block); i < 4 * blocks; i += kThreads) {
      const int part = i / (2 * blocks), j = i / blocks % 2, channel = i % blocks;
      const int place = j * Layout::weight_row(shape.width) + part * blocks + channel;
      float sum = sums[place];
      for (int t = 0; t < count; ++t) {
        const float of_logit = of_logits[j * kSteps + t], value = input[(part * kSteps + t) * row_length + channel];
        sum = kernels::multiply_add(of_logit, value, sum);
      }
      sums[place] = sum;
    }
  }

  template <class Block>
  TWINBENCH_DEVICE static void store_shares(Block& block, const BackwardArguments& b, const BackLayout& at,
                                            std::int64_t item, const Rows& rows, float of_bias) {
    const Shape& shape = b.scan.shape;
    const int thread = simt::thread_rank(block), all = whole_slabs(shape.states), blocks = whole_blocks(shape.width);
    if constexpr (kAtOnce) store_sums(rows, b, item, thread, 0);
    auto of_rates = floats_at(block, at.of_rates);
    const std::int64_t states = std::int64_t{shape.groups} * shape.states, group = item % shape.groups * shape.states;
    float* const decays = b.of_decays + item / shape.groups * 2 * states + group;
    for (int n = thread; n < shape.states; n += kThreads) {
      const float of_rate = of_rates[n], of_phase = of_rates[all + n];
      decays[n] = kernels::sigmoid(b.scan.a_raw[group + n]) * of_rate;
      decays[states + n] = of_phase;
    }
    float* const of_weights = shares_of(b, item) + 4 * std::int64_t{shape.width} * shape.states;
    auto sums = floats_at(block, at.of_weights);
    for (int i = thread; i < 4 * shape.width; i += kThreads) {
      const int j = i / (2 * shape.width), part = i / shape.width % 2, channel = i % shape.width;
      of_weights[i] = sums[j * Layout::weight_row(shape.width) + part * blocks + channel];
    }
    // The steps of a kind lie in neighbouring lanes.
    of_bias = simt::group_sum<kSteps>(block, of_bias);
    if (thread % kSteps == 0 && thread < 2 * kSteps) of_weights[4 * shape.width + thread / kSteps] = of_bias;
  }
};

struct Back : BackAs<true> {};
struct BackOfMany : BackAs<false> {};

}  // namespace twinbench::sem::selective_scan
