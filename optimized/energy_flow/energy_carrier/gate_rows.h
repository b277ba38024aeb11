// Loops over the carrier's channels on the CPU: guards, gates forward and backward, masks of gradients.
//
// Sums come in four blocks, [hidden candidate | reset | update | input candidate]: the hidden products fill the first
// three, the input products the last three, so that reset and update are summed by the products.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/energy_carrier/math.h"
#include "optimized/common/panel_words.h"

namespace twinbench::energy_flow::energy_carrier {

constexpr std::int64_t kBlocks = 4;
constexpr std::int64_t kTileRow = kBlocks * kPanelLanes;  // sums of kPanelLanes channels of a flow

// Returns how many values were NaN.
template <class Real>
TWINBENCH_CPU_CLONES static std::int32_t guard_row(const Real* __restrict raw, Real* __restrict guarded,
                                                   std::int64_t width) {
  std::int32_t hits = 0;
  for (std::int64_t j = 0; j < width; ++j) {
    hits += raw[j] != raw[j] ? 1 : 0;
    guarded[j] = kernels::guard(raw[j], Real(kGuardLimit));
  }
  return hits;
}

// Up to kPanelLanes channels of `rows` flows. Arrays are [flows, width] but for the tile, [rows, kTileRow], and the
// summed biases, [4, width], which have their own order: reset, update, then the candidate's input and hidden bias.
// `operand` receives the unguarded next state that the layer above multiplies; `next` the guarded one that is stored.
// `kept`, of a backward pass: [flows, 4, width], receives [hidden candidate sum | reset | update | candidate].
template <class Real>
struct GateTile {
  std::int64_t rows = 0, width = 0;
  const Real *sums = nullptr, *bias = nullptr, *hidden = nullptr;
  Real *next = nullptr, *operand = nullptr, *kept = nullptr;
};

template <bool kKept, class Real>
inline __attribute__((always_inline)) void gate_row(const Real* __restrict sums, const Real* __restrict bias,
                                                    const Real* __restrict hidden, Real* __restrict next,
                                                    Real* __restrict operand, Real* __restrict kept, std::int64_t width,
                                                    std::int64_t channels) {
  for (std::int64_t j = 0; j < channels; ++j) {
    const Real from_hidden = sums[j] + bias[3 * width + j];
    const Channel<Real> channel =
        gru_channel(sums[kPanelLanes + j] + bias[j], sums[2 * kPanelLanes + j] + bias[width + j],
                    sums[3 * kPanelLanes + j] + bias[2 * width + j], from_hidden, hidden[j]);
    if constexpr (kKept) {
      kept[j] = from_hidden;
      kept[width + j] = channel.reset;
      kept[2 * width + j] = channel.update;
      kept[3 * width + j] = channel.candidate;
    }
    next[j] = kernels::guard(channel.next, Real(kGuardLimit));
    operand[j] = channel.next;
  }
}

template <bool kKept, class Real>
inline __attribute__((always_inline)) void gate_rows(const GateTile<Real>& t, std::int64_t channels) {
  for (std::int64_t row = 0; row < t.rows; ++row) {
    const std::int64_t at = row * t.width;
    Real* kept = kKept ? t.kept + kBlocks * at : nullptr;
    if (channels == kPanelLanes)
      gate_row<kKept>(t.sums + row * kTileRow, t.bias, t.hidden + at, t.next + at, t.operand + at, kept, t.width,
                      kPanelLanes);
    else
      gate_row<kKept>(t.sums + row * kTileRow, t.bias, t.hidden + at, t.next + at, t.operand + at, kept, t.width,
                      channels);
  }
}

template <class Real>
TWINBENCH_CPU_CLONES static void gate_tile(const GateTile<Real>& tile, std::int64_t channels) {
  gate_rows<false>(tile, channels);
}
template <class Real>
TWINBENCH_CPU_CLONES static void gate_tile_kept(const GateTile<Real>& tile, std::int64_t channels) {
  gate_rows<true>(tile, channels);
}

// Replaces the four blocks of a kept row by the gradients of their sums; grad_hidden gets the direct path only.
template <class Real>
TWINBENCH_CPU_CLONES static void gate_row_backward(Real* __restrict candidate_hidden, Real* __restrict reset,
                                                   Real* __restrict update, Real* __restrict candidate,
                                                   const Real* __restrict hidden, const Real* __restrict grad_stored,
                                                   const Real* __restrict grad_above, Real* __restrict grad_hidden,
                                                   std::int64_t width, bool top) {
  for (std::int64_t j = 0; j < width; ++j) {
    const ChannelGradient<Real> grad = guarded_channel_gradient(reset[j], update[j], candidate[j], candidate_hidden[j],
                                                                hidden[j], grad_stored[j], grad_above[j], top);
    candidate_hidden[j] = grad.candidate_hidden;
    reset[j] = grad.reset_sum;
    update[j] = grad.update_sum;
    candidate[j] = grad.candidate_input;
    grad_hidden[j] = grad.hidden;
  }
}

template <class Real>
TWINBENCH_CPU_CLONES static void mask_row(const Real* __restrict raw, Real* __restrict gradient, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j)
    gradient[j] = kernels::guard_gradient(raw[j], Real(kGuardLimit), gradient[j]);
}

}  // namespace twinbench::energy_flow::energy_carrier
