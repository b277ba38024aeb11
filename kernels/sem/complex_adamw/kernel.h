// The kernels of sem.complex_adamw: norm and decision, then one pass over the arena. A block takes pieces of it.
#pragma once

#include "kernels/common/adamw_kernel.h"
#include "kernels/sem/common/normals.h"
#include "kernels/sem/complex_adamw/arguments.h"

namespace twinbench::sem::complex_adamw {

namespace simt = kernels::simt;
using kernels::Floats;

constexpr int kThreads = kernels::kArenaThreads;

// Grid: at most kMostNormBlocks blocks that stride over the pieces.
struct Norm {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    kernels::norm_and_decision(
        block, a.count, a.partial, a.arrived,
        [&](std::int64_t i) {
          const Piece piece = kernels::loaded(a.pieces + i);
          double sum = kernels::squares(block, a.gradients, piece.first, piece.count);
          if (piece.partner != 0) sum += kernels::squares(block, a.gradients, piece.first + piece.partner, piece.count);
          return sum;
        },
        [&](double norm) { decide(a, norm); });
  }

 private:
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
    const Piece piece = kernels::loaded(a.pieces + block.index().x);
    const Step step = kernels::loaded(a.step);
    if (step.applied == 0) {
      if (!a.clears) return;
      kernels::clear(block, a.gradients + piece.first, piece.count);
      if (piece.partner != 0) kernels::clear(block, a.gradients + piece.first + piece.partner, piece.count);
    } else if (piece.partner == 0) {
      each<1>(block, a, step, piece);
    } else {
      each<2>(block, a, step, piece);
    }
  }

 private:
  // kParts: 1 plain, 2 complex.
  template <int kParts, class Block>
  TWINBENCH_DEVICE static void each(const Block& block, const Arguments& a, const Step& step, const Piece& piece) {
    const bool fours = (piece.first - piece.second) % 4 == 0 && piece.partner % 4 == 0 &&
                       kernels::allows_four(0, a.parameters, a.gradients, a.first_moment, a.second_moment);
    kernels::each_of(block, kernels::Cut::of(piece.first, piece.count, fours), [&](auto width, int i) {
      constexpr int kWidth = decltype(width)::value;
      kernels::update_elements<kParts, kWidth>(a, step, piece.first + i, piece.partner, piece.second + i,
                                               [&](int part, const Floats<kWidth>& below, Floats<kWidth>& parameter) {
                                                 if constexpr (kNoise)
                                                   add_noise(a, step, piece, part, i, below, parameter);
                                               });
    });
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
