// The carrier heads' kernels, written once for the GPU and for the checked run on the host.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/energy_flow/carrier_heads/arguments.h"

namespace twinbench::energy_flow::carrier_heads {

namespace simt = kernels::simt;

// One warp a flow: GELU, the second layers as sums over the lanes, then the scalar rules of one flow in lane 0.
struct Forward {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ForwardArguments<float>& a) const {
    const std::int64_t flow = simt::global_index(block) / simt::kWarpSize;
    if (flow >= a.flows) return;  // whole warps leave together, and no barrier follows
    const Sums<float> sums = second_layers(block, a, flow);
    if (simt::lane(block) != 0) return;
    const Results<float> result =
        finish(a.rule, sums, Vector3<float>::load(a.position, flow), static_cast<std::uint32_t>(a.sample_key[flow]),
               static_cast<std::uint32_t>(a.local_id[flow]));
    store_results(a, flow, sums, result);
    if (a.second_sums) a.second_sums[flow] = sums;
  }

 private:
  static TWINBENCH_HOST_DEVICE float activation(const ForwardArguments<float>& a, std::int64_t flow,
                                                std::int32_t column) {
    const std::int64_t at = flow * a.columns.all + column;
    const float kept = kernels::operand(kernels::gelu(a.sums[at] + a.bias[column]), a.round);
    if (a.activated) a.activated[at] = kept;
    return kept;
  }

  template <class Block>
  static TWINBENCH_DEVICE Sums<float> second_layers(Block& block, const ForwardArguments<float>& a, std::int64_t flow) {
    const int lane = simt::lane(block);
    const std::int32_t width = a.columns.head_width;
    float energy = 0, gate = 0;
    Vector3<float> d = {0, 0, 0};
    for (std::int32_t j = lane; j < a.columns.energy_width; j += simt::kWarpSize)
      energy += activation(a, flow, j) * a.energy_out_weight[j];
    for (std::int32_t j = lane; j < width; j += simt::kWarpSize) {
      const float value = activation(a, flow, a.columns.displacement() + j);
      d.x += value * a.displacement_out_weight[j];
      d.y += value * a.displacement_out_weight[width + j];
      d.z += value * a.displacement_out_weight[2 * width + j];
      if (a.rule.gate) gate += activation(a, flow, a.columns.gate() + j) * a.gate_out_weight[j];
    }
    Sums<float> sums;
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

// One warp a flow: gradients of the second layers' sums in every lane, then those of the first layers', by column.
struct Backward {
  static constexpr int kMaxThreads = 256;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BackwardArguments<float>& a) const {
    const std::int64_t flow = simt::global_index(block) / simt::kWarpSize;
    if (flow >= a.flows) return;
    const int lane = simt::lane(block);
    SumGradients<float> grad =
        finish_backward(a.rule, a.second_sums[flow], a.spawn_count[flow], given_gradients(a, flow));
    if (lane == 0) {
      grad.store(a.grad_second, flow);
      if (a.rule.gate) a.sums.store(flow * a.columns.all + a.columns.child(), grad.child);
    }
    if (a.second_operand) {
      grad.round();
      if (lane == 0) grad.store(a.second_operand, flow);
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
  static TWINBENCH_HOST_DEVICE void through_activation(const BackwardArguments<float>& a, std::int64_t flow,
                                                       std::int32_t column, float grad_activated) {
    const std::int64_t at = flow * a.columns.all + column;
    a.sums.store(at, grad_activated * kernels::gelu_derivative(a.sums.plain[at] + a.bias[column]));
  }
};

}  // namespace twinbench::energy_flow::carrier_heads
