// The kernels of sem.complex_adamw: norm and decision, then one pass over the arena. A block takes pieces of it.
#pragma once

#include <cstring>

#include "kernels/common/grid.h"
#include "kernels/common/simt_handover.h"
#include "kernels/common/vectors.h"
#include "kernels/sem/common/normals.h"
#include "kernels/sem/complex_adamw/arguments.h"

namespace twinbench::sem::complex_adamw {

namespace simt = kernels::simt;
using kernels::Floats;

constexpr int kThreads = 256;

// A struct that all threads need, in accesses of 16 bytes that wait together.
template <class T>
TWINBENCH_DEVICE T loaded(const T* from) {
  static_assert(sizeof(T) % 16 == 0 && alignof(T) == 16);
  Floats<4> parts[sizeof(T) / 16];
  TWINBENCH_UNROLL
  for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i)
    parts[i] = kernels::load<4>(reinterpret_cast<const float*>(from) + 4 * i);
  T value;
  memcpy(&value, parts, sizeof(T));
  return value;
}

// Elements [begin, begin + count) of arrays of which all begin at an address that is a multiple of 16: a head of less
// than four elements, groups of four, a tail. `fours` false: every element by itself.
struct Cut {
  int head, groups, tail;

  TWINBENCH_DEVICE static Cut of(std::int64_t begin, int count, bool fours) {
    if (!fours) return {count, 0, 0};
    const int lead = static_cast<int>((4 - begin % 4) % 4), head = lead < count ? lead : count;
    return {head, (count - head) / 4, (count - head) % 4};
  }
};

// Grid: at most kMostNormBlocks blocks that stride over the pieces. The last block to finish adds up what all have
// found, in a fixed order, and decides.
struct Norm {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const unsigned blocks = block.grid().x;
    double sum = 0;
    for (std::int64_t i = block.index().x; i < a.count; i += blocks) {
      const Piece piece = loaded(a.pieces + i);
      sum += squares(block, a.gradients, piece.first, piece.count);
      if (piece.partner != 0) sum += squares(block, a.gradients, piece.first + piece.partner, piece.count);
    }
    sum = simt::block_sum(block, sum);
    if (simt::thread_rank(block) == 0) a.partial[block.index().x] = sum;
    if (!simt::is_last_block(block, a.arrived, blocks)) return;
    double all = 0;
    for (unsigned i = static_cast<unsigned>(simt::thread_rank(block)); i < blocks; i += kThreads) all += a.partial[i];
    all = simt::block_sum(block, all);
    if (simt::thread_rank(block) == 0) decide(a, std::sqrt(all));
  }

 private:
  static constexpr int kBatch = 4;  // loads in flight

  TWINBENCH_DEVICE static double square(float x) { return static_cast<double>(x) * static_cast<double>(x); }

  // This thread's share.
  template <class Block>
  TWINBENCH_DEVICE static double squares(const Block& block, const float* gradients, std::int64_t begin, int count) {
    const Cut cut = Cut::of(begin, count, kernels::allows_four(0, gradients));
    const float* const values = gradients + begin;
    double sum = 0;
    kernels::in_batches<kBatch>(
        simt::thread_rank(block), kThreads, cut.groups,
        [&](int i) { return kernels::load<4>(values + cut.head + 4 * i); },
        [&](int, const Floats<4>& four) {
          TWINBENCH_UNROLL
          for (int k = 0; k < 4; ++k) sum += square(four.of[k]);
        });
    TWINBENCH_ROLLED
    for (int i = simt::thread_rank(block); i < cut.head + cut.tail; i += kThreads)
      sum += square(values[i < cut.head ? i : i + 4 * cut.groups]);
    return sum;
  }

  TWINBENCH_DEVICE static void decide(const Arguments& a, double norm) {
    Counts counts{a.counts[0], a.counts[1], a.counts[2]};
    double coefficient = 0;
    *a.step = decided(a.rule, norm, *a.loss, *a.learning_rate, counts, coefficient);
    a.counts[0] = counts.applied;
    a.counts[1] = counts.suppressed;
    a.counts[2] = counts.in_a_row;
    *a.status = status_of(counts.in_a_row);
    *a.norm = norm;
    *a.coefficient = coefficient;
  }
};

// Grid: a block a piece.
template <bool kNoise>
struct UpdateOf {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const Piece piece = loaded(a.pieces + block.index().x);
    const Step step = loaded(a.step);
    if (step.applied == 0) {
      if (!a.clears) return;
      clear(block, a.gradients + piece.first, piece.count);
      if (piece.partner != 0) clear(block, a.gradients + piece.first + piece.partner, piece.count);
    } else if (piece.partner == 0) {
      each<1>(block, a, step, piece);
    } else {
      each<2>(block, a, step, piece);
    }
  }

 private:
  template <class Block>
  TWINBENCH_DEVICE static void clear(const Block& block, float* values, int count) {
    TWINBENCH_ROLLED
    for (int i = simt::thread_rank(block); i < count; i += kThreads) values[i] = 0;
  }

  // kParts: 1 plain, 2 complex.
  template <int kParts, class Block>
  TWINBENCH_DEVICE static void each(const Block& block, const Arguments& a, const Step& step, const Piece& piece) {
    const bool fours = (piece.first - piece.second) % 4 == 0 && piece.partner % 4 == 0 &&
                       kernels::allows_four(0, a.parameters, a.gradients, a.first_moment, a.second_moment);
    const Cut cut = Cut::of(piece.first, piece.count, fours);
    const int thread = simt::thread_rank(block);
    TWINBENCH_ROLLED
    for (int i = thread; i < cut.groups; i += kThreads) take<kParts, 4>(a, step, piece, cut.head + 4 * i);
    TWINBENCH_ROLLED
    for (int i = thread; i < cut.head + cut.tail; i += kThreads)
      take<kParts, 1>(a, step, piece, i < cut.head ? i : i + 4 * cut.groups);
  }

  // kWidth elements from place `i` of the piece on. All loads come before the first store.
  template <int kParts, int kWidth>
  TWINBENCH_DEVICE static void take(const Arguments& a, const Step& step, const Piece& piece, int i) {
    Floats<kWidth> parameter[kParts], gradient[kParts], first[kParts];
    TWINBENCH_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const std::int64_t at = piece.first + part * piece.partner + i;
      gradient[part] = kernels::load<kWidth>(a.gradients + at);
      first[part] = kernels::load<kWidth>(a.first_moment + at);
      parameter[part] = kernels::load<kWidth>(a.parameters + at);
    }
    Floats<kWidth> second = kernels::load<kWidth>(a.second_moment + piece.second + i);
    Floats<kWidth> below;
    TWINBENCH_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      float square = 0;
      TWINBENCH_UNROLL
      for (int part = 0; part < kParts; ++part) {
        float& g = gradient[part].of[k];
        g *= step.coefficient;
        square = kernels::multiply_add(g, g, square);
      }
      second.of[k] = moved_second(second.of[k], square);
      below.of[k] = denominator(second.of[k], step);
      TWINBENCH_UNROLL
      for (int part = 0; part < kParts; ++part) {
        first[part].of[k] = moved_first(first[part].of[k], gradient[part].of[k]);
        parameter[part].of[k] = moved_parameter(parameter[part].of[k], first[part].of[k], below.of[k], step);
        gradient[part].of[k] = a.clears ? 0.0f : gradient[part].of[k];
      }
    }
    TWINBENCH_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const std::int64_t at = piece.first + part * piece.partner + i;
      if constexpr (kNoise) add_noise(a, step, piece, part, i, below, parameter[part]);
      kernels::store(a.parameters + at, parameter[part]);
      kernels::store(a.first_moment + at, first[part]);
      kernels::store(a.gradients + at, gradient[part]);
    }
    kernels::store(a.second_moment + piece.second + i, second);
  }

  // Elements of a tensor that are no multiple of four apart from its start lie in two blocks of the generator.
  template <int kWidth>
  TWINBENCH_DEVICE static void add_noise(const Arguments& a, const Step& step, const Piece& piece, int part, int i,
                                         const Floats<kWidth>& below, Floats<kWidth>& parameter) {
    const auto element = static_cast<std::uint64_t>(piece.element + i);
    const auto at = static_cast<int>(element % 4);
    const std::uint32_t stream = piece.stream + static_cast<std::uint32_t>(part);
    const FourNormals near = four_normals(a.seed, stream, step.number, element / 4);
    FourNormals next = near;
    if (at + kWidth > 4) next = four_normals(a.seed, stream, step.number, element / 4 + 1);
    TWINBENCH_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      // Without an index that only the run knows: such an array would lie in memory.
      float normal = 0;
      TWINBENCH_UNROLL
      for (int place = 0; place < 4; ++place) {
        if (at + k == place) normal = near.of[place];
        if (at + k == place + 4) normal = next.of[place];
      }
      parameter.of[k] += noise_of(normal, below.of[k], step);
    }
  }
};

struct Update : UpdateOf<false> {};
struct NoisyUpdate : UpdateOf<true> {};  // with a temperature above 0

}  // namespace twinbench::sem::complex_adamw
