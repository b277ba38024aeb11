// The training step's own kernels: elements by threads that stride, what is one number by the first thread of all.
#pragma once

#include <cmath>

#include "kernels/common/grid.h"
#include "kernels/common/simt_reduce.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/train_step/arguments.h"

namespace twinbench::energy_flow::train_step {

namespace simt = kernels::simt;

constexpr int kThreads = kernels::kElementThreads;

template <class Block>
TWINBENCH_DEVICE std::int64_t first_of(const Block& block) {
  return std::int64_t{block.index().x} * kThreads + simt::thread_rank(block);
}
template <class Block>
TWINBENCH_DEVICE std::int64_t stride_of(const Block& block) {
  return std::int64_t{block.grid().x} * kThreads;
}
TWINBENCH_DEVICE double scale_of(const std::int64_t* exponent) {
  return exponent == nullptr ? 1.0 : std::ldexp(1.0, static_cast<int>(*exponent));
}

// Grid: kernels::striding_blocks(max(count, micro_steps), kThreads), one at least.
struct Begin {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BeginArguments& a) const {
    const std::int64_t first = first_of(block), stride = stride_of(block);
    if (first == 0) {
      *a.state = {};
      a.anomaly[0] = a.anomaly[1] = -1;
      *a.scale = a.scales[place_of_scale(*a.applied, a.last_scale)];
    }
    for (std::int64_t i = first; i < a.count; i += stride) a.sums[i] = 0.0f;
    for (std::int64_t i = first; i < a.micro_steps; i += stride) {
      a.upstream[i] = static_cast<float>(scale_of(a.exponent) * static_cast<double>(a.shares[i]));
      a.losses[i] = 0.0f;
    }
  }
};

// Grid: a block a row of inputs, then of targets; they stride beyond kernels::kMostBlocks.
struct Stage {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const StageArguments& a) const {
    const std::int64_t all = 2 * a.rows, blocks = block.grid().x;
    for (std::int64_t i = block.index().x; i < all; i += blocks) {
      const bool is_input = i < a.rows;
      const std::int64_t at = (is_input ? i : i - a.rows) * a.width;
      const float* const from = (is_input ? a.input : a.target) + at;
      float* const to = (is_input ? a.to_input : a.to_target) + at;
      int bad = 0;
      for (std::int64_t c = simt::thread_rank(block); c < a.width; c += kThreads) {
        const float value = from[c];
        bad |= is_number(value) ? 0 : 1;
        to[c] = a.sanitises ? sanitised(value) : value;
      }
      if (!a.sanitises) continue;
      bad = simt::block_sum(block, bad);
      if (simt::thread_rank(block) == 0 && bad > 0) simt::atomic_add(block, a.sanitised, std::int32_t{1});
    }
  }
};

// Grid: one block, so that there is one that notes.
struct Inspect {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const InspectArguments& a) const {
    int bad = 0;
    for (std::int64_t i = simt::thread_rank(block); i < a.count; i += kThreads) bad |= is_number(a.values[i]) ? 0 : 1;
    bad = simt::block_sum(block, bad);
    if (simt::thread_rank(block) > 0 || bad == 0 || a.anomaly[1] >= 0) return;
    a.anomaly[0] = a.micro_step;
    a.anomaly[1] = a.stage;
  }
};

// Grid: kernels::striding_blocks(count + text_count, kThreads), one at least.
struct Accumulate {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const AccumulateArguments& a) const {
    const bool finite = *a.finite != 0;
    const std::int64_t first = first_of(block), stride = stride_of(block);
    for (std::int64_t i = first; i < a.count; i += stride) a.sums[i] = accumulated(a.sums[i], a.gradients[i], finite);
    float* const of_texts = a.sums + a.count;
    for (std::int64_t i = first; i < a.text_count; i += stride)
      of_texts[i] = accumulated(of_texts[i], a.of_texts[i], finite);
    if (first > 0) return;
    if (!finite) {
      ++a.state->skipped;
      return;
    }
    a.state->loss_sum += static_cast<double>(a.rows) * static_cast<double>(*a.loss);
    a.state->loss_rows += static_cast<double>(a.rows);
    ++a.state->contributed;
  }
};

// Grid: kernels::striding_blocks(count, kThreads), one at least.
struct Gather {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const GatherArguments& a) const {
    const std::int64_t first = first_of(block), stride = stride_of(block);
    for (std::int64_t i = first; i < a.count; i += stride) {
      const std::int32_t place = a.places[i];
      a.gradients[i] = place > 0 ? a.sums[place - 1] : 0.0f;
    }
    if (first > 0) return;
    *a.factor = static_cast<float>(a.rescaling / scale_of(a.exponent));
    *a.loss = static_cast<float>(a.state->loss_sum / a.state->loss_rows);
  }
};

// Grid: a block a piece, one at least.
struct Renew {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const RenewArguments& a) const {
    if (std::int64_t{block.index().x} < a.count) {
      const PackPiece piece = a.pieces[block.index().x];
      for (std::int64_t i = simt::thread_rank(block); i < piece.count; i += kThreads)
        piece.to[i] = pack_element(a.arena, piece.first[i], piece.second != nullptr ? piece.second[i] : 0, piece.to[i]);
    }
    if (first_of(block) > 0) return;
    LossScale scale{a.counts[3], a.counts[4]};
    move_scale(*a.status == kApplied, *a.status == kNotFinite, a.good_windows, scale);
    ++a.counts[2];
    a.counts[3] = scale.exponent;
    a.counts[4] = scale.good_steps;
    a.record[0] = a.state->skipped;
    a.record[1] = a.state->sanitised;
  }

 private:
  static constexpr std::int64_t kApplied = 0, kNotFinite = 1;  // of the optimizer's status
};

}  // namespace twinbench::energy_flow::train_step
