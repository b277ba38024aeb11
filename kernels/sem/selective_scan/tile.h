// Shared memory of sem.selective_scan's kernels, and what they all do with a tile of steps.
#pragma once

#include "kernels/common/simt_scan.h"
#include "kernels/common/vectors.h"
#include "kernels/sem/selective_scan/arguments.h"
#include "kernels/sem/selective_scan/math.h"

namespace twinbench::sem::selective_scan {

namespace simt = kernels::simt;
using kernels::Floats;

// Of a [step or channel][state] matrix: neighbouring rows lie half the banks apart.
constexpr int kRow = kSlab + 16;
constexpr int kColumnThreads = 16, kRowThreads = kThreads / kColumnThreads;  // that move a tile, a channel each
constexpr int kParts = 16;                                                   // threads that share a sum

TWINBENCH_HOST_DEVICE int whole_blocks(int width) { return (width + kChannels - 1) / kChannels * kChannels; }
TWINBENCH_HOST_DEVICE int whole_slabs(int states) { return (states + kSlab - 1) / kSlab * kSlab; }
// Neighbouring rows of channels lie half the banks apart, and the planes of the output a quarter.
TWINBENCH_HOST_DEVICE int channel_row(int width) {
  return whole_blocks(width) % 32 == 16 ? whole_blocks(width) : whole_blocks(width) + 16;
}
TWINBENCH_HOST_DEVICE int input_row(int width) { return channel_row(width); }
TWINBENCH_HOST_DEVICE int output_row(int width) { return channel_row(width); }
TWINBENCH_HOST_DEVICE int output_plane(int width, int steps) { return steps * output_row(width) + 8; }

// States of a slab that there is work for: as many as project_out takes at a time.
TWINBENCH_HOST_DEVICE int work_of(const Shape& shape, int slab) {
  const int rest = (shape.states - slab + kChannels - 1) / kChannels * kChannels;
  return rest < kSlab ? rest : kSlab;
}

// Floats from the start of shared memory; every array but the steps is two planes.
struct Layout {
  int input, output, weights, steps, rates, last, products, states, projection, end;

  // `outputs`: with the output's tile and the block of the projection that makes it; else with products of decays.
  TWINBENCH_HOST_DEVICE static Layout of(const Shape& shape, int steps, bool outputs) {
    Layout at{};
    at.input = 0;
    at.output = at.input + 2 * steps * input_row(shape.width);
    at.weights = at.output + (outputs ? 2 * output_plane(shape.width, steps) : 0);
    at.steps = at.weights + 2 * weight_row(shape.width);
    at.rates = at.steps + 2 * steps;
    at.last = at.rates + 2 * whole_slabs(shape.states);
    at.products = at.last + 2 * whole_slabs(shape.states);
    at.states = at.products + (outputs ? 0 : 2 * whole_slabs(shape.states));
    at.projection = at.states + 2 * steps * kRow;
    at.end = at.projection + (outputs ? 2 * kChannels * kRow : 0);
    return at;
  }
  TWINBENCH_HOST_DEVICE static int weight_row(int width) { return 2 * whole_blocks(width) + 16; }
};

template <class Block>
TWINBENCH_DEVICE auto floats_at(Block& block, int first) {
  return simt::dynamic_shared<float>(block, 4 * first);
}
template <class Block>
TWINBENCH_DEVICE auto vectors_at(Block& block, int first) {
  return simt::dynamic_shared<Floats<4>>(block, 4 * first);
}

// Where a step of an item lies in one plane of [batch, steps, groups, width].
TWINBENCH_DEVICE std::int64_t place_of(const Shape& shape, std::int64_t item, int step) {
  const std::int64_t batch = item / shape.groups, group = item % shape.groups;
  return ((batch * shape.steps + step) * shape.groups + group) * shape.width;
}
TWINBENCH_DEVICE std::int64_t plane_of(const Shape& shape) {
  return std::int64_t{shape.batch} * shape.steps * shape.groups * shape.width;
}

// body(row of 2 * kSteps: real parts then imaginary ones, channel) for this thread's share of a tile.
template <int kSteps, class Block, class Body>
TWINBENCH_DEVICE void each_of_tile(Block& block, int width, Body body) {
  const int first_row = simt::thread_rank(block) / kColumnThreads;
  for (int channel = simt::thread_rank(block) % kColumnThreads; channel < width; channel += kColumnThreads) {
    TWINBENCH_UNROLL
    for (int row = 0; row < 2 * kSteps; row += kRowThreads) body(row + first_row, channel);
  }
}

// Steps [first, first + kSteps) of [2, batch, steps, groups, width] to shared memory, zeros from `count` on and past
// the last channel.
template <int kSteps, class Block>
TWINBENCH_DEVICE void load_tile(Block& block, const Shape& shape, const float* from, std::int64_t item, int first,
                                int count, int to) {
  auto tile = floats_at(block, to);
  const int row_length = input_row(shape.width);
  const float* const start = from + place_of(shape, item, first);
  const std::int64_t plane = plane_of(shape), step = std::int64_t{shape.groups} * shape.width;
  const int first_row = simt::thread_rank(block) / kColumnThreads;
  for (int channel = simt::thread_rank(block) % kColumnThreads; channel < whole_blocks(shape.width);
       channel += kColumnThreads) {
    constexpr int kEach = 2 * kSteps / kRowThreads;
    float values[kEach];
    TWINBENCH_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const int row = i * kRowThreads + first_row, t = row % kSteps;
      values[i] = 0.0f;
      if (t < count && channel < shape.width) values[i] = start[row / kSteps * plane + t * step + channel];
    }
    TWINBENCH_UNROLL
    for (int i = 0; i < kEach; ++i) tile[(i * kRowThreads + first_row) * row_length + channel] = values[i];
  }
}

template <int kSteps, class Block>
TWINBENCH_DEVICE void store_tile(Block& block, const Shape& shape, float* to, std::int64_t item, int first, int count,
                                 int from) {
  auto tile = floats_at(block, from);
  const int row_length = output_row(shape.width);
  float* const start = to + place_of(shape, item, first);
  const std::int64_t plane = plane_of(shape), step = std::int64_t{shape.groups} * shape.width;
  each_of_tile<kSteps>(block, shape.width, [&](int row, int channel) {
    const float value = tile[row / kSteps * output_plane(shape.width, kSteps) + row % kSteps * row_length + channel];
    if (row % kSteps < count) start[row / kSteps * plane + row % kSteps * step + channel] = value;
  });
}

// What does not change along a sequence: the step sizes' weights, rates and phases, zeros past the last state.
template <class Block>
TWINBENCH_DEVICE void load_parameters(Block& block, const ScanArguments& a, std::int64_t item, const Layout& at) {
  const int thread = simt::thread_rank(block), width = a.shape.width, blocks = whole_blocks(width);
  auto weights = floats_at(block, at.weights);
  for (int i = thread; i < 2 * blocks; i += kThreads) {
    const int part = i / blocks, channel = i % blocks;
    TWINBENCH_UNROLL
    for (int j = 0; j < 2; ++j)
      weights[j * Layout::weight_row(width) + i] =
          channel < width ? a.dt_weight[(2 * j + part) * width + channel] : 0.0f;
  }
  auto rates = floats_at(block, at.rates);
  const int all = whole_slabs(a.shape.states);
  const std::int64_t group = item % a.shape.groups * a.shape.states;
  for (int n = thread; n < all; n += kThreads) {
    const bool there = n < a.shape.states;
    rates[n] = there ? softplus(a.a_raw[group + n]) : 0.0f;
    rates[all + n] = there ? a.a_phase[group + n] : 0.0f;
  }
}

// Lengths, then turns of the tile's steps, from its input: kParts threads a step. `exponential(j, t, value)` gets what
// the clamp is applied to. A barrier before and after.
template <int kSteps, class Block, class Keep>
TWINBENCH_DEVICE void find_steps(Block& block, const ScanArguments& a, const Layout& at, Keep exponential) {
  auto input = floats_at(block, at.input);
  auto weights = floats_at(block, at.weights);
  auto steps = floats_at(block, at.steps);
  const int thread = simt::thread_rank(block), part = thread % kParts, j = part % 2;
  const int row_length = input_row(a.shape.width), blocks = whole_blocks(a.shape.width);
  const int weight_row = Layout::weight_row(a.shape.width);
  const float bias = a.dt_bias[j];
  TWINBENCH_UNROLL
  for (int t = thread / kParts; t < kSteps; t += kThreads / kParts) {
    float lengths = 0.0f, turns = 0.0f;
    for (int k = part; k < blocks; k += kParts) {
      const float real = input[t * row_length + k], imaginary = input[(kSteps + t) * row_length + k];
      const float length_real = weights[k], length_imaginary = weights[blocks + k];
      const float turn_real = weights[weight_row + k], turn_imaginary = weights[weight_row + blocks + k];
      lengths = kernels::multiply_add(length_imaginary, imaginary, kernels::multiply_add(length_real, real, lengths));
      turns = kernels::multiply_add(turn_imaginary, imaginary, kernels::multiply_add(turn_real, real, turns));
    }
    // Even lanes go on with lengths, odd ones with turns.
    const float given = block.shuffle_xor(j == 0 ? turns : lengths, 1);
    float logit = (j == 0 ? lengths : turns) + given;
    TWINBENCH_UNROLL
    for (int lanes = kParts / 2; lanes > 1; lanes /= 2) logit += block.shuffle_xor(logit, lanes);
    const float value = kernels::exp(logit + bias);
    if (part < 2) {
      exponential(j, t, value);
      steps[j * kSteps + t] = clamped_step(value);
    }
  }
}

// A row of a complex matrix that stays in registers: kChannels numbers.
struct Weights {
  float real[kChannels], imaginary[kChannels];
};
// Channels [first, first + kChannels) of a state: at `from`, `apart` one from the next, `plane` from real to imaginary
// parts; zeros where there are none.
TWINBENCH_DEVICE void load_weights(Weights& weights, const float* from, std::int64_t apart, std::int64_t plane,
                                   int count) {
  TWINBENCH_UNROLL
  for (int p = 0; p < kChannels; ++p) {
    weights.real[p] = 0.0f, weights.imaginary[p] = 0.0f;
    if (p < count) weights.real[p] = from[p * apart], weights.imaginary[p] = from[p * apart + plane];
  }
}

// sum over the block's channels of weights * row (or of their conjugates), whose planes lie at vectors `real` and
// `imaginary`: the same words for all threads.
template <bool kConjugate, class Shared>
TWINBENCH_DEVICE Number<float> weighted_row(const Weights& weights, Shared rows, int real, int imaginary,
                                            Number<float> sum) {
  TWINBENCH_UNROLL
  for (int i = 0; i < kChannels / 4; ++i) {
    const Floats<4> x = rows[real + i], y = rows[imaginary + i];
    TWINBENCH_UNROLL
    for (int k = 0; k < 4; ++k) {
      const float a = weights.real[4 * i + k],
                  b = kConjugate ? -weights.imaginary[4 * i + k] : weights.imaginary[4 * i + k];
      sum.real = kernels::multiply_add(a, x.of[k], sum.real);
      sum.real = kernels::multiply_add(-b, y.of[k], sum.real);
      sum.imaginary = kernels::multiply_add(a, y.of[k], sum.imaginary);
      sum.imaginary = kernels::multiply_add(b, x.of[k], sum.imaginary);
    }
  }
  return sum;
}

// The input projection's row of state n, from `channel` on.
TWINBENCH_DEVICE void load_into(Weights& weights, const ScanArguments& a, int n, int channel) {
  const std::int64_t row = std::int64_t{n} * a.shape.width + channel;
  load_weights(weights, a.input_projection + row, 1, std::int64_t{a.shape.states} * a.shape.width,
               n < a.shape.states ? a.shape.width - channel : 0);
}

// The tile's projected inputs of a thread's state, to the place of states: no other thread reads them.
// `load(weights, channel)` puts the state's row into the weights, unless they hold it already.
template <int kSteps, bool kAtOnce, class Block, class Load>
TWINBENCH_DEVICE void project_in(Block& block, const ScanArguments& a, const Layout& at, int slab, Weights& weights,
                                 const Load& load) {
  auto input = vectors_at(block, at.input);
  auto projected = floats_at(block, at.states);
  const int thread = simt::thread_rank(block), row = input_row(a.shape.width) / 4;
  if (thread >= work_of(a.shape, slab)) return;
  for (int channel = 0; channel < a.shape.width; channel += kChannels) {
    load(weights, channel);
    TWINBENCH_ROLLED
    for (int t = 0; t < kSteps; ++t) {
      Number<float> sum{0.0f, 0.0f};
      if (!kAtOnce && channel > 0) {
        const float real = projected[t * kRow + thread], imaginary = projected[(kSteps + t) * kRow + thread];
        sum = {real, imaginary};
      }
      sum = weighted_row<false>(weights, input, t * row + channel / 4, (kSteps + t) * row + channel / 4, sum);
      projected[t * kRow + thread] = sum.real;
      projected[(kSteps + t) * kRow + thread] = sum.imaginary;
    }
  }
}

// Of sums that kSharing neighbouring lanes share, each lane gets a kSharing-th whole: it adds its own to a neighbour's,
// and their number halves each time.
template <int kSharing, int kCount, class Block>
TWINBENCH_DEVICE Floats<kCount / kSharing> shared_sums(Block& block, const float (&sums)[kCount]) {
  if constexpr (kSharing == 1) {
    Floats<kCount> own;
    TWINBENCH_UNROLL
    for (int i = 0; i < kCount; ++i) own.of[i] = sums[i];
    return own;
  } else {
    const bool upper = (simt::lane(block) & kSharing / 2) != 0;
    float half[kCount / 2];
    TWINBENCH_UNROLL
    for (int i = 0; i < kCount / 2; ++i) {
      const float kept = upper ? sums[kCount / 2 + i] : sums[i], given = upper ? sums[i] : sums[kCount / 2 + i];
      half[i] = kept + block.shuffle_xor(given, kSharing / 2);
    }
    return shared_sums<kSharing / 2>(block, half);
  }
}

// out[t][channel] of kChannels channels = or += sum over a slab's states of projection[channel][n] * states[t][n], or
// of the projection's conjugate. A lane takes two steps and eight channels of every kSharing-th four states; the
// lanes that share them add up, so that a warp does it all in one go.
template <int kSteps, bool kConjugate, class Block>
TWINBENCH_DEVICE void project_out(Block& block, const Shape& shape, const Layout& at, int slab, int first_channel) {
  constexpr int kTimes = 2, kEach = 8, kSums = 2 * kTimes * kEach, kVectors = kRow / 4;
  constexpr int kTiles = kThreads / simt::kWarpSize / (kChannels / kEach);  // of steps, one a warp
  constexpr int kSharing = simt::kWarpSize * kTiles * kTimes / kSteps, kOwn = kSums / kSharing;
  auto states = vectors_at(block, at.states);
  auto projection = vectors_at(block, at.projection);
  auto out = simt::dynamic_shared<Floats<kOwn>>(block, 4 * at.output);
  const int lane = simt::lane(block), warp = simt::warp(block), part = lane % kSharing;
  const int t = (warp / (kChannels / kEach) * (simt::kWarpSize / kSharing) + lane / kSharing) * kTimes;
  const int channel = warp % (kChannels / kEach) * kEach, vectors = work_of(shape, slab) / 4;
  float sums[kSums] = {};  // real parts, then imaginary ones, of [kTimes][kEach]
  TWINBENCH_ROLLED
  for (int n = part; n < vectors; n += kSharing) {
    Floats<4> real[kTimes], imaginary[kTimes];
    TWINBENCH_UNROLL
    for (int k = 0; k < kTimes; ++k) {
      real[k] = states[(t + k) * kVectors + n];
      imaginary[k] = states[(kSteps + t + k) * kVectors + n];
    }
    TWINBENCH_UNROLL
    for (int p = 0; p < kEach; ++p) {
      const Floats<4> x = projection[(channel + p) * kVectors + n],
                      y = projection[(kChannels + channel + p) * kVectors + n];
      TWINBENCH_UNROLL
      for (int k = 0; k < kTimes; ++k) {
        float &to_real = sums[k * kEach + p], &to_imaginary = sums[(kTimes + k) * kEach + p];
        TWINBENCH_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float b = kConjugate ? -y.of[e] : y.of[e];
          to_real = kernels::multiply_add(x.of[e], real[k].of[e], to_real);
          to_real = kernels::multiply_add(-b, imaginary[k].of[e], to_real);
          to_imaginary = kernels::multiply_add(x.of[e], imaginary[k].of[e], to_imaginary);
          to_imaginary = kernels::multiply_add(b, real[k].of[e], to_imaginary);
        }
      }
    }
  }
  Floats<kOwn> own = shared_sums<kSharing>(block, sums);
  const int first = part * kOwn, plane = first / (kTimes * kEach), time = t + first / kEach % kTimes;
  const int place = (plane * output_plane(shape.width, kSteps) + time * output_row(shape.width) + first_channel +
                     channel + first % kEach) /
                    kOwn;
  if (slab > 0) {
    const Floats<kOwn> before = out[place];
    TWINBENCH_UNROLL
    for (int i = 0; i < kOwn; ++i) own.of[i] += before.of[i];
  }
  out[place] = own;
}

}  // namespace twinbench::sem::selective_scan
