// The carrier heads' kernels, written once for the GPU and for the checked run on the host.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/energy_flow/carrier_heads/arguments.h"

namespace twinbench::energy_flow::carrier_heads {

namespace simt = kernels::simt;

// One warp a flow: GELU, the second layers as sums over the lanes, then the scalar rules of one flow in lane 0.
struct FinishHeads {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const HeadsArguments& a) const {
    const std::int64_t flow = simt::global_index(block) / simt::kWarpSize;
    if (flow >= a.flows) return;  // whole warps leave together, and no barrier follows
    const HeadSums sums = second_layers(block, a, flow);
    if (simt::lane(block) != 0) return;
    const float* p = a.position + 3 * flow;
    const HeadResults result = finish_heads(a.rule, sums, {p[0], p[1], p[2]},
                                            static_cast<std::uint32_t>(a.sample_key[flow]),
                                            static_cast<std::uint32_t>(a.local_id[flow]));
    a.energy[flow] = result.energy;
    store(a.displacement, flow, sums.displacement);
    store(a.delta, flow, result.delta);
    store(a.raw, flow, result.raw);
    a.spawn_measure[flow] = result.spawn_measure;
    a.spawn_count[flow] = result.spawn_count;
    a.child_energy[flow] = result.child_energy;
    if (a.second_sums) a.second_sums[flow] = sums;
  }

 private:
  static TWINBENCH_HOST_DEVICE void store(float* rows, std::int64_t flow, Vector3 v) {
    rows[3 * flow] = v.x;
    rows[3 * flow + 1] = v.y;
    rows[3 * flow + 2] = v.z;
  }

  static TWINBENCH_HOST_DEVICE float activation(const HeadsArguments& a, std::int64_t flow, std::int32_t column) {
    const std::int64_t at = flow * a.columns.all + column;
    const float value = kernels::gelu(a.sums[at] + a.bias[column]);
    const float kept = a.round ? kernels::round_to_bf16(value) : value;
    if (a.activated) a.activated[at] = kept;
    return kept;
  }

  template <class Block>
  static TWINBENCH_DEVICE HeadSums second_layers(Block& block, const HeadsArguments& a, std::int64_t flow) {
    const int lane = simt::lane(block);
    const std::int32_t width = a.columns.head_width;
    float energy = 0, gate = 0;
    Vector3 d = {0, 0, 0};
    for (std::int32_t j = lane; j < a.columns.energy_width; j += simt::kWarpSize)
      energy += activation(a, flow, j) * a.energy_out_weight[j];
    for (std::int32_t j = lane; j < width; j += simt::kWarpSize) {
      const float value = activation(a, flow, a.columns.displacement() + j);
      d.x += value * a.displacement_out_weight[j];
      d.y += value * a.displacement_out_weight[width + j];
      d.z += value * a.displacement_out_weight[2 * width + j];
      if (a.rule.gate) gate += activation(a, flow, a.columns.gate() + j) * a.gate_out_weight[j];
    }
    HeadSums sums;
    sums.energy = simt::warp_sum(block, energy) + a.out_bias[0];
    sums.displacement.x = simt::warp_sum(block, d.x) + a.out_bias[1];
    sums.displacement.y = simt::warp_sum(block, d.y) + a.out_bias[2];
    sums.displacement.z = simt::warp_sum(block, d.z) + a.out_bias[3];
    sums.gate = simt::warp_sum(block, gate) + a.out_bias[4];
    sums.child = 0;
    if (a.rule.gate) sums.child = a.sums[flow * a.columns.all + a.columns.child()] + a.bias[a.columns.child()];
    return sums;
  }
};

// One warp a flow: gradients of the second layers' sums in every lane, then those of the first layer's, column by column.
struct DifferentiateHeads {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const HeadsBackwardArguments& a) const {
    const std::int64_t flow = simt::global_index(block) / simt::kWarpSize;
    if (flow >= a.flows) return;
    const int lane = simt::lane(block);
    HeadSumGradients grad = finish_heads_backward(
        a.rule, a.second_sums[flow], a.spawn_count[flow],
        {a.grad_energy[flow], vector(a.grad_displacement, flow), vector(a.grad_delta, flow), vector(a.grad_raw, flow),
         a.grad_child_energy[flow]});
    if (lane == 0) {
      store_second(a.grad_second, flow, grad);
      if (a.rule.gate) store(a, flow, a.columns.child(), grad.child);
    }
    if (a.second_operand) {
      grad.energy = kernels::round_to_bf16(grad.energy);
      grad.displacement = {kernels::round_to_bf16(grad.displacement.x), kernels::round_to_bf16(grad.displacement.y),
                           kernels::round_to_bf16(grad.displacement.z)};
      if (lane == 0) store_second(a.second_operand, flow, grad);
    }
    for (std::int32_t j = lane; j < a.columns.energy_width; j += simt::kWarpSize)
      through_activation(a, flow, j, grad.energy * a.energy_out_weight[j]);
    const std::int32_t width = a.columns.head_width;
    for (std::int32_t j = lane; j < width; j += simt::kWarpSize)
      through_activation(a, flow, a.columns.displacement() + j,
                         grad.displacement.x * a.displacement_out_weight[j] +
                             grad.displacement.y * a.displacement_out_weight[width + j] +
                             grad.displacement.z * a.displacement_out_weight[2 * width + j]);
  }

 private:
  static TWINBENCH_HOST_DEVICE Vector3 vector(const float* rows, std::int64_t flow) {
    return {rows[3 * flow], rows[3 * flow + 1], rows[3 * flow + 2]};
  }
  static TWINBENCH_HOST_DEVICE void store_second(float* rows, std::int64_t flow, const HeadSumGradients& grad) {
    rows[4 * flow] = grad.energy;
    rows[4 * flow + 1] = grad.displacement.x;
    rows[4 * flow + 2] = grad.displacement.y;
    rows[4 * flow + 3] = grad.displacement.z;
  }
  static TWINBENCH_HOST_DEVICE void store(const HeadsBackwardArguments& a, std::int64_t flow, std::int32_t column,
                                          float gradient) {
    const std::int64_t at = flow * a.columns.all + column;
    a.sums[at] = gradient;
    if (a.grad_sums_bf16) a.grad_sums_bf16[at] = kernels::bf16_bits(gradient);
  }
  static TWINBENCH_HOST_DEVICE void through_activation(const HeadsBackwardArguments& a, std::int64_t flow,
                                                       std::int32_t column, float grad_activated) {
    const float sum = a.sums[flow * a.columns.all + column] + a.bias[column];
    store(a, flow, column, grad_activated * kernels::gelu_derivative(sum));
  }
};

struct RoundToBf16 {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const RoundArguments& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.count; i += simt::global_count(block))
      a.rounded[i] = kernels::bf16_bits(a.values[i]);
  }
};

}  // namespace twinbench::energy_flow::carrier_heads
