// The energy carrier's kernels, written once for the GPU and for the checked run on the host.
#pragma once

#include "kernels/common/grid.h"
#include "kernels/energy_flow/energy_carrier/arguments.h"
#include "kernels/energy_flow/energy_carrier/math.h"

namespace twinbench::energy_flow::energy_carrier {

namespace simt = kernels::simt;

// One warp a flow.
struct Guard {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const GuardArguments& a) const {
    const auto [flows, features, width, layers] = a.shape;
    const std::int64_t flow = simt::global_index(block) / simt::kWarpSize;
    if (flow >= flows) return;  // whole warps leave together, and no barrier follows
    std::int32_t hits = 0;
    for (std::int32_t j = simt::lane(block); j <= features; j += simt::kWarpSize)
      hits += guard_one(j < features ? a.features[flow * features + j] : a.energy[flow], a.input,
                        flow * (features + 1) + j);
    for (std::int32_t l = 0; l < layers; ++l) {
      const std::int64_t row = (l * flows + flow) * width;
      for (std::int32_t j = simt::lane(block); j < width; j += simt::kWarpSize)
        hits += guard_one(a.hidden[row + j], a.guarded_hidden, row + j);
    }
    hits = simt::warp_sum(block, hits);
    if (simt::lane(block) == 0) a.guard_hits[flow] = hits;
  }

 private:
  // 1 where the value was NaN.
  static TWINBENCH_HOST_DEVICE std::int32_t guard_one(float raw, const Operands<float>& to, std::int64_t at) {
    to.store(at, kernels::guard(raw, kGuardLimit));
    return raw != raw;
  }
};

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
                    x[candidate] + a.bias_input[candidate + j], from_hidden, a.hidden[at]);
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
        guarded_channel_gradient(kept[0], kept[width], kept[2 * width], kept[3 * width], a.hidden[at],
                                 a.grad_stored[at], a.grad_above[at], a.top);
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
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const MaskArguments& a) const {
    const auto [flows, features, width, layers] = a.shape;
    const std::int64_t flow = simt::global_index(block) / simt::kWarpSize;
    if (flow >= flows) return;
    const float* grad_input = a.grad_input + flow * (features + 1);
    for (std::int32_t j = simt::lane(block); j < features; j += simt::kWarpSize) {
      const std::int64_t at = flow * features + j;
      a.grad_features[at] = kernels::guard_gradient(a.features[at], kGuardLimit, grad_input[j]);
    }
    if (simt::lane(block) == 0)
      a.grad_energy[flow] = kernels::guard_gradient(a.energy[flow], kGuardLimit, grad_input[features]);
    for (std::int32_t l = 0; l < layers; ++l)
      for (std::int32_t j = simt::lane(block); j < width; j += simt::kWarpSize) {
        const std::int64_t at = (l * flows + flow) * width + j;
        a.grad_hidden[at] = kernels::guard_gradient(a.hidden[at], kGuardLimit, a.grad_direct[at] + a.grad_product[at]);
      }
  }
};

}  // namespace twinbench::energy_flow::energy_carrier
