// The kernels of sem.selective_scan: a batch item's group a block, through all steps of a chunk, a tile at a time. The
// states stay on the chip; nothing of the size of all states at all steps is written.
#pragma once

#include "kernels/common/simt_handover.h"
#include "kernels/sem/selective_scan/tile.h"

namespace twinbench::sem::selective_scan {

// What a pass over the steps is for: the outputs of a chunk, whose start follows from the ends of those before it; the
// end of a chunk that began with nothing and the product of its decays; the states before every tile.
enum class Purpose { kOutputs, kEnds, kStarts };

// kAtOnce: a block's states and channels are one slab and one block of them (Shape::at_once).
template <Purpose kPurpose, bool kAtOnce>
struct PassAs {
  static constexpr int kMaxThreads = kThreads;
  static constexpr int kMinBlocksPerSm = kAtOnce ? 3 : 2;  // no registers to spare
  static constexpr int kSteps = kAtOnce ? 16 : 8;
  static constexpr bool kOutputs = kPurpose == Purpose::kOutputs;

  static std::int64_t documented_shared_bytes() {
    const Shape at_once{.width = kChannels, .states = kSlab}, more{.width = 2 * kChannels, .states = 2 * kSlab};
    return 4 * std::int64_t{Layout::of(kAtOnce ? at_once : more, kSteps, kOutputs).end};
  }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ScanArguments& a) const {
    const Shape& shape = a.shape;
    const std::int64_t items = shape.items(), item = block.index().x % items;
    const int chunk = static_cast<int>(block.index().x / items), thread = simt::thread_rank(block);
    const int begin = chunk * a.chunk, end = begin + a.chunk < shape.steps ? begin + a.chunk : shape.steps;
    const Layout at = Layout::of(shape, kSteps, kOutputs);
    const int all = whole_slabs(shape.states);
    auto last = floats_at(block, at.last);
    load_parameters(block, a, item, at);
    for (int n = thread; n < all; n += kThreads) {
      begin_chunk(a, item, chunk, n, all, last);
      if constexpr (kPurpose == Purpose::kEnds) floats_at(block, at.products)[n] = 1.0f;
      if constexpr (kPurpose == Purpose::kEnds) floats_at(block, at.products)[all + n] = 0.0f;
    }
    Weights weights;
    if constexpr (kAtOnce) {
      load_into(weights, a, thread, 0);
      if constexpr (kOutputs) load_projection(block, a, at, 0, 0);
    }
    float most = 0.0f;
    for (int first = begin; first < end; first += kSteps) {
      const int count = end - first < kSteps ? end - first : kSteps;
      block.barrier();
      load_tile<kSteps>(block, shape, a.input, item, first, count, at.input);
      block.barrier();
      find_steps<kSteps>(block, a, at, [](int, int, float) {});
      block.barrier();
      for (int slab = 0; slab < all; slab += kSlab) {
        if constexpr (!kAtOnce)
          project_in<kSteps, kAtOnce>(block, a, at, slab, weights,
                                      [&](Weights& row, int channel) { load_into(row, a, slab + thread, channel); });
        scan(block, a, at, slab, item, first, count, weights, most);
        if constexpr (kOutputs) {
          block.barrier();
          for (int channel = 0; channel < shape.width; channel += kChannels) {
            if constexpr (!kAtOnce) {
              load_projection(block, a, at, slab, channel);
              block.barrier();
            }
            project_out<kSteps, false>(block, shape, at, slab, channel);
            if constexpr (!kAtOnce) block.barrier();
          }
        }
      }
      if constexpr (kOutputs) {
        block.barrier();
        store_tile<kSteps>(block, shape, a.output, item, first, count, at.output);
      }
    }
    if constexpr (kPurpose == Purpose::kEnds) end_chunk(block, a, at, item, chunk);
    if constexpr (kOutputs) find_largest(block, a, item, chunk, most);
  }

 private:
  // The state before a chunk, from the ends of the chunks before it.
  template <class Shared>
  TWINBENCH_DEVICE static void begin_chunk(const ScanArguments& a, std::int64_t item, int chunk, int n, int all,
                                           Shared last) {
    Number<float> state{0.0f, 0.0f};
    if (kOutputs && n < a.shape.states) {
      const float* end = a.ends + item * a.chunks * 4 * a.shape.states + n;
      for (int before = 0; before < chunk; ++before, end += 4 * a.shape.states)
        state = add_product({end[0], end[a.shape.states]}, state,
                            Number<float>{end[2 * a.shape.states], end[3 * a.shape.states]});
    }
    last[n] = state.real;
    last[all + n] = state.imaginary;
  }

  // Channels and states of the output projection that project_out takes at once.
  template <class Block>
  TWINBENCH_DEVICE static void load_projection(Block& block, const ScanArguments& a, const Layout& at, int slab,
                                               int channel) {
    auto to = floats_at(block, at.projection);
    const int thread = simt::thread_rank(block), n = slab + thread;
    if (thread >= work_of(a.shape, slab)) return;
    TWINBENCH_UNROLL
    for (int p = 0; p < 2 * kChannels; ++p) {
      const int row = channel + p % kChannels;
      const bool there = row < a.shape.width && n < a.shape.states;
      const std::int64_t from = (std::int64_t{p / kChannels} * a.shape.width + row) * a.shape.states + n;
      to[p * kRow + thread] = there ? a.output_projection[from] : 0.0f;
    }
  }

  // From inputs to states, a step after the other; kAtOnce projects them on the way, else they are projected.
  template <class Block>
  TWINBENCH_DEVICE static void scan(Block& block, const ScanArguments& a, const Layout& at, int slab, std::int64_t item,
                                    int first, int count, const Weights& weights, float& most) {
    auto states = floats_at(block, at.states);
    auto input = vectors_at(block, at.input);
    auto steps = floats_at(block, at.steps);
    auto last = floats_at(block, at.last);
    auto rates = floats_at(block, at.rates);
    const int thread = simt::thread_rank(block), n = slab + thread, all = whole_slabs(a.shape.states);
    const int row = input_row(a.shape.width) / 4;
    if (thread >= work_of(a.shape, slab)) return;
    const float rate = rates[n], phase = rates[all + n];
    const float last_real = last[n], last_imaginary = last[all + n];
    Number<float> state{last_real, last_imaginary};
    if constexpr (kPurpose == Purpose::kStarts) {
      if (n < a.shape.states) {
        float* const to = a.starts + (item * a.shape.tiles() + first / kSteps) * 2 * a.shape.states + n;
        to[0] = state.real;
        to[a.shape.states] = state.imaginary;
      }
    }
    Number<float> product{1.0f, 0.0f};
    TWINBENCH_ROLLED
    for (int t = 0; t < count; ++t) {
      const float length = steps[t], turn = steps[kSteps + t];
      const Number<float> decay = decay_of(length, rate, turn, phase);
      Number<float> projected{0.0f, 0.0f};
      if constexpr (kAtOnce) {
        projected = weighted_row<false>(weights, input, t * row, (kSteps + t) * row, projected);
      } else {
        const float real = states[t * kRow + thread], imaginary = states[(kSteps + t) * kRow + thread];
        projected = {real, imaginary};
      }
      state = next_state(decay, state, projected, length);
      if constexpr (kPurpose == Purpose::kEnds) product = add_product(decay, product, Number<float>{0.0f, 0.0f});
      if constexpr (kOutputs) {
        states[t * kRow + thread] = state.real;
        states[(kSteps + t) * kRow + thread] = state.imaginary;
        most = simt::Larger{}(kernels::multiply_add(state.real, state.real, state.imaginary * state.imaginary), most);
      }
    }
    if constexpr (kOutputs && kAtOnce)  // project_out takes whole tiles
      for (int t = count; t < kSteps; ++t) {
        states[t * kRow + thread] = 0.0f;
        states[(kSteps + t) * kRow + thread] = 0.0f;
      }
    last[n] = state.real;
    last[all + n] = state.imaginary;
    if constexpr (kPurpose == Purpose::kEnds) {
      auto products = floats_at(block, at.products);
      const float real = products[n], imaginary = products[all + n];
      product = add_product(product, Number<float>{real, imaginary}, Number<float>{0.0f, 0.0f});
      products[n] = product.real;
      products[all + n] = product.imaginary;
    }
  }

  template <class Block>
  TWINBENCH_DEVICE static void end_chunk(Block& block, const ScanArguments& a, const Layout& at, std::int64_t item,
                                         int chunk) {
    auto last = floats_at(block, at.last);
    auto products = floats_at(block, at.products);
    const int thread = simt::thread_rank(block), all = whole_slabs(a.shape.states);
    float* const to = a.ends + (item * a.chunks + chunk) * 4 * a.shape.states;
    for (int n = thread; n < a.shape.states; n += kThreads) {
      const float product_real = products[n], product_imaginary = products[all + n];
      const float state_real = last[n], state_imaginary = last[all + n];
      to[n] = product_real;
      to[a.shape.states + n] = product_imaginary;
      to[2 * a.shape.states + n] = state_real;
      to[3 * a.shape.states + n] = state_imaginary;
    }
  }

  // The largest state of the chunk, and in the last block of a batch item of all of it.
  template <class Block>
  TWINBENCH_DEVICE static void find_largest(Block& block, const ScanArguments& a, std::int64_t item, int chunk,
                                            float most) {
    most = simt::block_max(block, most, 0.0f);
    if (simt::thread_rank(block) == 0) a.largest[item * a.chunks + chunk] = most;
    const std::int64_t batch = item / a.shape.groups;
    const int parts = a.shape.groups * a.chunks;
    if (!simt::is_last_block(block, a.finished + batch, static_cast<unsigned>(parts))) return;
    float largest = 0.0f;
    for (int i = simt::thread_rank(block); i < parts; i += kThreads)
      largest = simt::Larger{}(a.largest[batch * parts + i], largest);
    largest = simt::block_max(block, largest, 0.0f);
    if (simt::thread_rank(block) == 0) a.largest_state[batch] = std::sqrt(largest);
  }
};

struct Outputs : PassAs<Purpose::kOutputs, true> {};
struct Ends : PassAs<Purpose::kEnds, true> {};
struct Starts : PassAs<Purpose::kStarts, true> {};
struct OutputsOfMany : PassAs<Purpose::kOutputs, false> {};
struct EndsOfMany : PassAs<Purpose::kEnds, false> {};
struct StartsOfMany : PassAs<Purpose::kStarts, false> {};

}  // namespace twinbench::sem::selective_scan
