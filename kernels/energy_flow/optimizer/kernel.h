// The kernels of energy_flow.optimizer: norm and decision, then one pass over the arena. A block takes pieces of it.
#pragma once

#include "kernels/common/adamw_kernel.h"
#include "kernels/energy_flow/optimizer/arguments.h"

namespace twinbench::energy_flow::optimizer {

namespace simt = kernels::simt;
using kernels::Floats;

constexpr int kThreads = kernels::kArenaThreads;

// Grid: at most kernels::kMostNormBlocks blocks that stride over the pieces.
struct Norm {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    kernels::norm_and_decision(
        block, a.count, a.partial, a.arrived,
        [&](std::int64_t i) {
          const Piece piece = kernels::loaded(a.pieces + i);
          return kernels::squares(block, a.gradients, piece.first, piece.count);
        },
        [&](double root) { *a.step = end_window(a, root); });
  }
};

// Grid: a block a piece. Gradients of a window that is not applied are discarded, whatever they hold.
struct Update {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const Piece piece = kernels::loaded(a.pieces + block.index().x);
    const Step step = kernels::loaded(a.step);
    if (step.applied == 0) {
      kernels::clear(block, a.gradients + piece.first, piece.count);
      return;
    }
    const bool fours = kernels::allows_four(0, a.parameters, a.gradients, a.first_moment, a.second_moment);
    kernels::each_of(block, kernels::Cut::of(piece.first, piece.count, fours), [&](auto width, int i) {
      constexpr int kWidth = decltype(width)::value;
      kernels::update_elements<1, kWidth>(a, step, piece.first + i, 0, piece.first + i,
                                          [](int, const Floats<kWidth>&, Floats<kWidth>&) {});
    });
  }
};

}  // namespace twinbench::energy_flow::optimizer
