// The energy carrier's kernels, written once for the GPU and for the checked run on the host.
#pragma once

#include "kernels/common/grid.h"
#include "kernels/common/guard_values.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/energy_carrier/arguments.h"
#include "kernels/energy_flow/energy_carrier/math.h"

namespace twinbench::energy_flow::energy_carrier {

namespace simt = kernels::simt;
using kernels::Floats;

constexpr int kRowBatch = 4;      // accesses of a lane in flight
constexpr int kFlowThreads = 64;  // of a block of two warps, a flow each: few flows fill the card, too

// One warp a flow, kWidth values at a time.
template <int kWidth>
struct GuardFlows {
  static constexpr int kMaxThreads = kFlowThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const GuardArguments& a) const {
    const std::int64_t flows = a.shape.flows, width = a.shape.width;
    const std::int64_t flow = simt::global_index(block) / simt::kWarpSize;
    if (flow >= flows) return;  // whole warps leave together, and no barrier follows
    std::int32_t hits = join_input(block, a, flow);
    for (std::int32_t l = 0; l < a.guarded_layers; ++l) hits += guard_row(block, a, (l * flows + flow) * width);
    hits = simt::warp_sum(block, hits);
    if (simt::lane(block) == 0) a.guard_hits[flow] = hits;
  }

 private:
  using Values = Floats<kWidth>;

  // Both return how many of this lane's values were NaN.
  template <class Block>
  static TWINBENCH_DEVICE std::int32_t join_input(Block& block, const GuardArguments& a, std::int64_t flow) {
    const std::int32_t features = a.shape.features, all = input_width(a.shape);
    const float* from = a.features + flow * features;
    std::int32_t hits = 0;
    for (std::int32_t i = simt::lane(block) * kWidth; i < all; i += simt::kWarpSize * kWidth) {
      Values raw{};
      if (i + kWidth <= features)
        raw = kernels::load<kWidth>(from + i);
      else if (i == features)
        raw.of[0] = a.energy[flow];
      hits += store_guarded(raw, a.input, flow * all + i);
    }
    return hits;
  }
  template <class Block>
  static TWINBENCH_DEVICE std::int32_t guard_row(Block& block, const GuardArguments& a, std::int64_t row) {
    constexpr std::int32_t kStep = simt::kWarpSize * kWidth;
    std::int32_t hits = 0, i = simt::lane(block) * kWidth;
    for (; i + (kRowBatch - 1) * kStep < a.shape.width; i += kRowBatch * kStep) {
      Values raw[kRowBatch];
      TWINBENCH_UNROLL
      for (int k = 0; k < kRowBatch; ++k) raw[k] = kernels::load<kWidth>(a.hidden + row + i + k * kStep);
      TWINBENCH_UNROLL
      for (int k = 0; k < kRowBatch; ++k) hits += store_guarded(raw[k], a.guarded_hidden, row + i + k * kStep);
    }
    for (; i < a.shape.width; i += kStep)
      hits += store_guarded(kernels::load<kWidth>(a.hidden + row + i), a.guarded_hidden, row + i);
    return hits;
  }
  static TWINBENCH_DEVICE std::int32_t store_guarded(const Values& raw, const Operands<float>& to, std::int64_t at) {
    kernels::store(to, at, kernels::guarded(raw, kGuardLimit));
    return kernels::nan_of(raw);
  }
};

// Rows of any length and start.
struct GuardAnyWidth : GuardFlows<1> {};

struct Guard : GuardFlows<4> {};
// Whether features and states may be taken four at a time.
inline bool takes_four(const GuardArguments& a) {
  const auto aligned = [](const auto*... starts) {
    return ((reinterpret_cast<std::uintptr_t>(starts) % (4 * sizeof(*starts)) == 0) && ...);
  };
  return (a.shape.features | a.shape.width) % 4 == 0 &&
         aligned(a.features, a.hidden, a.input.plain, a.input.bf16, a.guarded_hidden.plain, a.guarded_hidden.bf16);
}

// Flow and channel of a thread where a row of channels is spread over whole blocks.
struct FlowChannel {
  std::int64_t flow;
  std::int32_t channel;
};
template <class Block>
TWINBENCH_DEVICE FlowChannel flow_channel(const Block& block, std::int32_t width) {
  const unsigned each = (static_cast<unsigned>(width) + block.size().x - 1) / block.size().x;  // blocks a flow
  return {block.index().x / each,
          static_cast<std::int32_t>(block.index().x % each * block.size().x + block.thread().x)};
}

// One thread a channel of a flow.
struct Gates {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const GatesArguments& a) const {
    const std::int32_t width = a.shape.width, update = width, candidate = 2 * width;
    const auto [flow, j] = flow_channel(block, width);
    if (flow >= a.shape.flows || j >= width) return;
    const std::int64_t at = flow * width + j;
    const float* x = a.input_sums + 3 * flow * width + j;
    const float* h = a.hidden_sums + 3 * flow * width + j;
    const float from_hidden = h[candidate] + a.bias_hidden[candidate + j];
    const Channel<float> channel =
        gru_channel((x[0] + h[0]) + (a.bias_input[j] + a.bias_hidden[j]),
                    (x[update] + h[update]) + (a.bias_input[update + j] + a.bias_hidden[update + j]),
                    x[candidate] + a.bias_input[candidate + j], from_hidden, kernels::guard(a.hidden[at], kGuardLimit));
    a.next[at] = kernels::guard(channel.next, kGuardLimit);
    a.operand.store(at, channel.next);
    if (!a.kept) return;
    float* kept = a.kept + 4 * flow * width + j;
    kept[0] = channel.reset;
    kept[update] = channel.update;
    kept[candidate] = channel.candidate;
    kept[candidate + width] = from_hidden;
  }
};

struct GatesBackward {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const GatesBackwardArguments& a) const {
    const std::int32_t width = a.shape.width;
    const auto [flow, j] = flow_channel(block, width);
    if (flow >= a.shape.flows || j >= width) return;
    const std::int64_t at = flow * width + j, row = 3 * flow * width + j;
    const float* kept = a.kept + 4 * flow * width + j;
    const ChannelGradient<float> grad =
        guarded_channel_gradient(kept[0], kept[width], kept[2 * width], kept[3 * width],
                                 kernels::guard(a.hidden[at], kGuardLimit), a.grad_stored[at], a.grad_above[at], a.top);
    a.grad_direct[at] = grad.hidden;
    store(a.grad_input_sums, row, width, grad.reset_sum, grad.update_sum, grad.candidate_input);
    store(a.grad_hidden_sums, row, width, grad.reset_sum, grad.update_sum, grad.candidate_hidden);
  }

 private:
  static TWINBENCH_HOST_DEVICE void store(const Operands<float>& sums, std::int64_t row, std::int32_t width,
                                          float reset, float update, float candidate) {
    sums.store(row, reset);
    sums.store(row + width, update);
    sums.store(row + 2 * width, candidate);
  }
};

// One warp a flow.
struct Mask {
  static constexpr int kMaxThreads = kFlowThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const MaskArguments& a) const {
    const auto [flows, features, width, layers] = a.shape;
    const std::int64_t flow = simt::global_index(block) / simt::kWarpSize;
    if (flow >= flows) return;
    const float* grad_input = a.grad_input + flow * input_width(a.shape);
    if (kernels::allows_four(features, a.features, a.grad_features, a.grad_input))
      mask_features<4>(block, a, flow, grad_input);
    else
      mask_features<1>(block, a, flow, grad_input);
    if (simt::lane(block) == 0)
      a.grad_energy[flow] = kernels::guard_gradient(a.energy[flow], kGuardLimit, grad_input[features]);
    const bool wide = kernels::allows_four(width, a.hidden, a.grad_direct, a.grad_product, a.grad_hidden);
    for (std::int32_t l = 0; l < layers; ++l) {
      const std::int64_t row = (l * flows + flow) * width;
      if (wide)
        mask_row<4>(block, a, row);
      else
        mask_row<1>(block, a, row);
    }
  }

 private:
  template <int kWidth>
  struct Terms {
    Floats<kWidth> value, gradient;
  };
  template <int kWidth>
  static TWINBENCH_DEVICE Floats<kWidth> masked(const Terms<kWidth>& terms) {
    return kernels::map(terms.value, terms.gradient, [](float value, float gradient) {
      return kernels::guard_gradient(value, kGuardLimit, gradient);
    });
  }

  template <int kWidth, class Block>
  static TWINBENCH_DEVICE void mask_features(Block& block, const MaskArguments& a, std::int64_t flow,
                                             const float* grad_input) {
    const std::int64_t row = flow * a.shape.features;
    for (std::int32_t j = simt::lane(block) * kWidth; j < a.shape.features; j += simt::kWarpSize * kWidth)
      kernels::store(a.grad_features + row + j, masked<kWidth>({kernels::load<kWidth>(a.features + row + j),
                                                                kernels::load<kWidth>(grad_input + j)}));
  }
  // Two batches' worth of three streams each.
  template <int kWidth, class Block>
  static TWINBENCH_DEVICE void mask_row(Block& block, const MaskArguments& a, std::int64_t row) {
    kernels::in_batches<2>(
        simt::lane(block), simt::kWarpSize, a.shape.width / kWidth,
        [&](std::int32_t i) {
          const std::int64_t at = row + i * kWidth;
          return Terms<kWidth>{
              kernels::load<kWidth>(a.hidden + at),
              kernels::map(kernels::load<kWidth>(a.grad_direct + at), kernels::load<kWidth>(a.grad_product + at),
                           [](float direct, float product) { return direct + product; })};
        },
        [&](std::int32_t i, const Terms<kWidth>& terms) {
          kernels::store(a.grad_hidden + row + i * kWidth, masked(terms));
        });
  }
};

}  // namespace twinbench::energy_flow::energy_carrier
