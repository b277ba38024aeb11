// The energy carrier's kernels, written once for the GPU and for the checked run on the host.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/energy_flow/energy_carrier/arguments.h"
#include "kernels/energy_flow/energy_carrier/math.h"

namespace twinbench::energy_flow::energy_carrier {

namespace simt = kernels::simt;

// One warp a flow.
struct CarrierGuard {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const CarrierGuardArguments& a) const {
    const std::int64_t flow = simt::global_index(block) / simt::kWarpSize;
    if (flow >= a.flows) return;  // whole warps leave together, and no barrier follows
    std::int32_t hits = 0;
    const std::int64_t input_row = flow * (a.feature_count + 1);
    for (std::int32_t j = simt::lane(block); j <= a.feature_count; j += simt::kWarpSize) {
      const float raw = j < a.feature_count ? a.features[flow * a.feature_count + j] : a.energy[flow];
      hits += raw != raw;
      const float value = kernels::guard(raw, kGuardLimit);
      a.input[input_row + j] = value;
      if (a.input_bf16) a.input_bf16[input_row + j] = kernels::bf16_bits(value);
    }
    for (std::int32_t l = 0; l < a.layers; ++l) {
      const std::int64_t row = (l * a.flows + flow) * a.width;
      for (std::int32_t j = simt::lane(block); j < a.width; j += simt::kWarpSize) {
        const float raw = a.hidden[row + j];
        hits += raw != raw;
        const float value = kernels::guard(raw, kGuardLimit);
        a.guarded_hidden[row + j] = value;
        if (a.hidden_bf16) a.hidden_bf16[row + j] = kernels::bf16_bits(value);
      }
    }
    hits = simt::warp_sum(block, hits);
    if (simt::lane(block) == 0) a.guard_hits[flow] = hits;
  }
};

// Flow and channel of a thread where a row of channels is spread over whole blocks.
struct FlowChannel {
  std::int64_t flow;
  std::int32_t channel;
};
TWINBENCH_HOST_DEVICE std::int64_t blocks_per_flow(std::int32_t width, int threads) {
  return (width + threads - 1) / threads;
}
template <class Block>
TWINBENCH_DEVICE FlowChannel flow_channel(const Block& block, std::int32_t width) {
  const auto each = static_cast<unsigned>(blocks_per_flow(width, static_cast<int>(block.size().x)));
  return {block.index().x / each,
          static_cast<std::int32_t>(block.index().x % each * block.size().x + block.thread().x)};
}

// One thread a channel of a flow.
struct CarrierGates {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const CarrierGateArguments& a) const {
    const auto [flow, j] = flow_channel(block, a.width);
    if (flow >= a.flows || j >= a.width) return;
    const std::int64_t at = flow * a.width + j;
    const float* x = a.input_sums + 3 * flow * a.width + j;
    const float* h = a.hidden_sums + 3 * flow * a.width + j;
    const std::int32_t update = a.width, candidate = 2 * a.width;
    const float from_hidden = h[candidate] + a.bias_hidden[candidate + j];
    const GruChannel channel = gru_channel(
        (x[0] + h[0]) + (a.bias_input[j] + a.bias_hidden[j]),
        (x[update] + h[update]) + (a.bias_input[update + j] + a.bias_hidden[update + j]),
        x[candidate] + a.bias_input[candidate + j], from_hidden, a.hidden[at]);
    a.next[at] = kernels::guard(channel.next, kGuardLimit);
    if (a.operand_bf16)
      a.operand_bf16[at] = kernels::bf16_bits(channel.next);
    else
      a.operand[at] = channel.next;
    if (!a.kept) return;
    float* kept = a.kept + 4 * flow * a.width + j;
    kept[0] = channel.reset;
    kept[update] = channel.update;
    kept[candidate] = channel.candidate;
    kept[candidate + a.width] = from_hidden;
  }
};

struct CarrierGatesBackward {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const CarrierGateBackwardArguments& a) const {
    const auto [flow, j] = flow_channel(block, a.width);
    if (flow >= a.flows || j >= a.width) return;
    const std::int64_t at = flow * a.width + j;
    const float* kept = a.kept + 4 * flow * a.width + j;
    const float update = kept[a.width], candidate = kept[2 * a.width];
    const float next = candidate + update * (a.hidden[at] - candidate);
    const float pass = kernels::guard_derivative(next, kGuardLimit);
    const float above = a.top ? a.grad_above[at] * pass : a.grad_above[at];
    const GruChannelGradient grad = gru_channel_gradient(kept[0], update, candidate, kept[3 * a.width], a.hidden[at],
                                                         a.grad_stored[at] * pass + above);
    a.grad_direct[at] = grad.hidden;
    const std::int64_t row = 3 * flow * a.width + j;
    store(a.grad_input_sums + row, a.grad_input_bf16, row, a.width, grad.reset_sum, grad.update_sum,
          grad.candidate_input);
    store(a.grad_hidden_sums + row, a.grad_hidden_bf16, row, a.width, grad.reset_sum, grad.update_sum,
          grad.candidate_hidden);
  }

 private:
  static TWINBENCH_HOST_DEVICE void store(float* sums, std::uint16_t* copy, std::int64_t row, std::int32_t width,
                                          float reset, float update, float candidate) {
    sums[0] = reset;
    sums[width] = update;
    sums[2 * width] = candidate;
    if (!copy) return;
    copy[row] = kernels::bf16_bits(reset);
    copy[row + width] = kernels::bf16_bits(update);
    copy[row + 2 * width] = kernels::bf16_bits(candidate);
  }
};

// Blocks of 32 columns by 8 row lanes; every column is summed in the same order on every run.
struct ColumnSum {
  static constexpr int kMaxThreads = 256;
  static constexpr int kRowLanes = 8;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ColumnSumArguments& a) const {
    auto partial = simt::shared_array<float, simt::kWarpSize * kRowLanes>(block);
    const int x = static_cast<int>(block.thread().x), y = static_cast<int>(block.thread().y);
    const std::int64_t column = static_cast<std::int64_t>(block.index().x) * simt::kWarpSize + x;
    float sum = 0;
    if (column < a.columns)
      for (std::int64_t row = y; row < a.count; row += kRowLanes) sum += a.rows[row * a.stride + column];
    partial[y * simt::kWarpSize + x] = sum;
    block.barrier();
    if (y != 0 || column >= a.columns) return;
    for (int k = 1; k < kRowLanes; ++k) {
      const float other = partial[k * simt::kWarpSize + x];
      sum += other;
    }
    a.sums[column] = sum;
  }
};

// One warp a flow.
struct CarrierMask {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const CarrierMaskArguments& a) const {
    const std::int64_t flow = simt::global_index(block) / simt::kWarpSize;
    if (flow >= a.flows) return;
    const float* grad_input = a.grad_input + flow * (a.feature_count + 1);
    for (std::int32_t j = simt::lane(block); j < a.feature_count; j += simt::kWarpSize) {
      const std::int64_t at = flow * a.feature_count + j;
      a.grad_features[at] = masked(a.features[at], grad_input[j]);
    }
    if (simt::lane(block) == 0) a.grad_energy[flow] = masked(a.energy[flow], grad_input[a.feature_count]);
    for (std::int32_t l = 0; l < a.layers; ++l)
      for (std::int32_t j = simt::lane(block); j < a.width; j += simt::kWarpSize) {
        const std::int64_t at = (l * a.flows + flow) * a.width + j;
        a.grad_hidden[at] = masked(a.hidden[at], a.grad_direct[at] + a.grad_product[at]);
      }
  }

 private:
  static TWINBENCH_HOST_DEVICE float masked(float raw, float gradient) {
    return kernels::guard_derivative(raw, kGuardLimit) != 0.0f ? gradient : 0.0f;
  }
};

}  // namespace twinbench::energy_flow::energy_carrier
