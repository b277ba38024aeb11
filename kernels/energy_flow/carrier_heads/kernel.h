// The carrier heads' kernels, written once for the GPU and for the checked run on the host.
//
// A block takes 32 flows: a warp the wide layers of four of them, then one warp the scalar rules with a lane a flow.
// Rows of three or six values go through shared memory, so that neighbouring lanes touch neighbouring addresses.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/common/warp_sums.h"
#include "kernels/energy_flow/carrier_heads/arguments.h"

namespace twinbench::energy_flow::carrier_heads {

namespace simt = kernels::simt;
using FourFlows = kernels::Floats<4>;

constexpr int kFlowsPerWarp = 4;
static_assert(kThreads / simt::kWarpSize * kFlowsPerWarp == kFlowsPerBlock);

// The block's share of a [flows, kWidth] matrix, in shared memory, a row a flow.
template <int kWidth, int kSlot, class Block>
TWINBENCH_DEVICE auto flow_rows(Block& block) {
  return simt::shared_array<float, kWidth * kFlowsPerBlock, kSlot>(block);
}
// Between it and global memory; rows past the last flow are left alone. No barrier.
template <int kWidth, class Block, class Shared>
TWINBENCH_DEVICE void load_rows(Block& block, std::int64_t flows, const float* from, Shared to) {
  const std::int64_t start = std::int64_t{block.index().x} * kFlowsPerBlock * kWidth;
  for (int i = simt::thread_rank(block); i < kWidth * kFlowsPerBlock; i += kThreads)
    if (start + i < flows * kWidth) to[i] = from[start + i];
}
template <int kWidth, class Block, class Shared>
TWINBENCH_DEVICE void store_rows(Block& block, std::int64_t flows, Shared from, float* to) {
  const std::int64_t start = std::int64_t{block.index().x} * kFlowsPerBlock * kWidth;
  for (int i = simt::thread_rank(block); i < kWidth * kFlowsPerBlock; i += kThreads)
    if (start + i < flows * kWidth) to[start + i] = from[i];
}
template <class Shared>
TWINBENCH_DEVICE Vector3<float> load_vector(Shared rows, int row) {
  const float x = rows[3 * row], y = rows[3 * row + 1], z = rows[3 * row + 2];
  return {x, y, z};
}
template <class Shared>
TWINBENCH_DEVICE void store_vector(Shared rows, int row, Vector3<float> value) {
  rows[3 * row] = value.x;
  rows[3 * row + 1] = value.y;
  rows[3 * row + 2] = value.z;
}

constexpr int kSums = 6;  // energy, displacement x y z, gate, child
static_assert(sizeof(Sums<float>) == kSums * sizeof(float));
template <class Shared>
TWINBENCH_DEVICE Sums<float> load_sums(Shared rows, int row) {
  const float energy = rows[kSums * row], gate = rows[kSums * row + 4], child = rows[kSums * row + 5];
  const float x = rows[kSums * row + 1], y = rows[kSums * row + 2], z = rows[kSums * row + 3];
  return {energy, {x, y, z}, gate, child};
}

// Grid: blocks_of(flows, kFlowsPerBlock).
struct Forward {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ForwardArguments<float>& a) const {
    auto sums = flow_rows<kSums, 0>(block);
    auto position = flow_rows<3, 0>(block), displacement = flow_rows<3, 1>(block), delta = flow_rows<3, 2>(block);
    auto raw = flow_rows<3, 3>(block);
    load_rows<3>(block, a.flows, a.position, position);
    second_layers(block, a, sums);
    block.barrier();
    const int row = simt::thread_rank(block);
    const std::int64_t flow = std::int64_t{block.index().x} * kFlowsPerBlock + row;
    if (row < kFlowsPerBlock && flow < a.flows) {
      const Sums<float> own = load_sums(sums, row);
      const Results<float> result =
          finish(a.rule, own, load_vector(position, row), static_cast<std::uint32_t>(a.sample_key[flow]),
                 static_cast<std::uint32_t>(a.local_id[flow]));
      a.energy[flow] = result.energy;
      a.spawn_measure[flow] = result.spawn_measure;
      a.spawn_count[flow] = result.spawn_count;
      a.child_energy[flow] = result.child_energy;
      store_vector(displacement, row, own.displacement);
      store_vector(delta, row, result.delta);
      store_vector(raw, row, result.raw);
    }
    block.barrier();
    store_rows<3>(block, a.flows, displacement, a.displacement);
    store_rows<3>(block, a.flows, delta, a.delta);
    store_rows<3>(block, a.flows, raw, a.raw);
    if (a.second_sums) store_rows<kSums>(block, a.flows, sums, reinterpret_cast<float*>(a.second_sums));
  }

 private:
  // GELU of one column of four flows from `first` on, zeros past the last flow.
  static TWINBENCH_DEVICE FourFlows activation(const ForwardArguments<float>& a, std::int64_t first,
                                               std::int32_t column) {
    const std::int64_t at = first * a.columns.all + column;
    const float bias = a.bias[column];
    FourFlows value{};
    TWINBENCH_UNROLL
    for (int i = 0; i < kFlowsPerWarp; ++i)
      if (first + i < a.flows) value.of[i] = a.sums[at + i * a.columns.all];
    TWINBENCH_UNROLL
    for (int i = 0; i < kFlowsPerWarp; ++i) value.of[i] = kernels::operand(kernels::gelu(value.of[i] + bias), a.round);
    if (a.activated) {
      TWINBENCH_UNROLL
      for (int i = 0; i < kFlowsPerWarp; ++i)
        if (first + i < a.flows) a.activated[at + i * a.columns.all] = value.of[i];
    }
    return value;
  }

  static TWINBENCH_DEVICE void add_product(FourFlows& sum, const FourFlows& value, float weight) {
    sum = kernels::map(sum, value, [weight](float s, float v) { return s + v * weight; });
  }

  // The sums of this warp's four flows, biases included, in shared memory.
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void second_layers(Block& block, const ForwardArguments<float>& a, Shared to) {
    const int lane = simt::lane(block), row = simt::warp(block) * kFlowsPerWarp;
    const std::int64_t first = std::int64_t{block.index().x} * kFlowsPerBlock + row;
    if (first >= a.flows) return;  // whole warps
    const std::int32_t width = a.columns.head_width;
    FourFlows sums[kSums] = {};
    for (std::int32_t j = lane; j < a.columns.energy_width; j += simt::kWarpSize)
      add_product(sums[0], activation(a, first, j), a.energy_out_weight[j]);
    for (std::int32_t j = lane; j < width; j += simt::kWarpSize) {
      const FourFlows value = activation(a, first, a.columns.displacement() + j);
      TWINBENCH_UNROLL
      for (int k = 0; k < 3; ++k) add_product(sums[1 + k], value, a.displacement_out_weight[k * width + j]);
      if (a.rule.gate) add_product(sums[4], activation(a, first, a.columns.gate() + j), a.gate_out_weight[j]);
    }
    TWINBENCH_UNROLL
    for (int s = 0; s < kSums - 1; ++s) {
      const FourFlows total = kernels::warp_sums(block, sums[s]);
      if (lane < kFlowsPerWarp) to[(row + lane) * kSums + s] = element(total, lane) + a.out_bias[s];
    }
    if (lane < kFlowsPerWarp) {
      float child = 0.0f;  // one value of a row: a sector each, whatever the order of the columns
      if (a.rule.gate && first + lane < a.flows)
        child = a.sums[(first + lane) * a.columns.all + a.columns.child()] + a.bias[a.columns.child()];
      to[(row + lane) * kSums + kSums - 1] = child;
    }
  }
  static TWINBENCH_DEVICE float element(const FourFlows& value, int i) {
    return i == 0 ? value.of[0] : i == 1 ? value.of[1] : i == 2 ? value.of[2] : value.of[3];
  }
};

// Grid as above: gradients of the second layers' sums with a lane a flow, then those of the first layers', by column.
struct Backward {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BackwardArguments<float>& a) const {
    auto sums = flow_rows<kSums, 0>(block);
    auto displacement = flow_rows<3, 0>(block), delta = flow_rows<3, 1>(block), raw = flow_rows<3, 2>(block);
    auto second = simt::shared_array<FourFlows, kFlowsPerBlock>(block);
    load_rows<kSums>(block, a.flows, reinterpret_cast<const float*>(a.second_sums), sums);
    load_rows<3>(block, a.flows, a.grad_displacement, displacement);
    load_rows<3>(block, a.flows, a.grad_delta, delta);
    load_rows<3>(block, a.flows, a.grad_raw, raw);
    block.barrier();
    const int row = simt::thread_rank(block);
    const std::int64_t flow = std::int64_t{block.index().x} * kFlowsPerBlock + row;
    if (row < kFlowsPerBlock && flow < a.flows) {
      const ResultGradients<float> given = {.energy = a.grad_energy[flow],
                                            .displacement = load_vector(displacement, row),
                                            .delta = load_vector(delta, row),
                                            .raw = load_vector(raw, row),
                                            .child_energy = a.grad_child_energy[flow]};
      SumGradients<float> grad = finish_backward(a.rule, load_sums(sums, row), a.spawn_count[flow], given);
      grad.store(a.grad_second, flow);
      if (a.rule.gate) a.sums.store(flow * a.columns.all + a.columns.child(), grad.child);
      if (a.second_operand) {
        grad.round();
        grad.store(a.second_operand, flow);
      }
      second[row] = FourFlows{{grad.energy, grad.displacement.x, grad.displacement.y, grad.displacement.z}};
    }
    block.barrier();
    first_layers(block, a, second);
  }

 private:
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void first_layers(Block& block, const BackwardArguments<float>& a, Shared second) {
    const int lane = simt::lane(block), row = simt::warp(block) * kFlowsPerWarp;
    const std::int64_t first = std::int64_t{block.index().x} * kFlowsPerBlock + row;
    FourFlows grad[kFlowsPerWarp] = {};
    TWINBENCH_UNROLL
    for (int i = 0; i < kFlowsPerWarp; ++i)
      if (first + i < a.flows) grad[i] = second[row + i];
    for (std::int32_t j = lane; j < a.columns.energy_width; j += simt::kWarpSize) {
      const float weight = a.energy_out_weight[j];
      through_activation(a, first, j, [&](int i) { return grad[i].of[0] * weight; });
    }
    const std::int32_t width = a.columns.head_width;
    for (std::int32_t j = lane; j < width; j += simt::kWarpSize) {
      const float x = a.displacement_out_weight[j], y = a.displacement_out_weight[width + j],
                  z = a.displacement_out_weight[2 * width + j];
      through_activation(a, first, a.columns.displacement() + j,
                         [&](int i) { return grad[i].of[1] * x + grad[i].of[2] * y + grad[i].of[3] * z; });
    }
  }

  // Four flows' sums of a column are replaced by their gradients.
  template <class Gradient>
  static TWINBENCH_DEVICE void through_activation(const BackwardArguments<float>& a, std::int64_t first,
                                                  std::int32_t column, Gradient grad_activated) {
    const std::int64_t at = first * a.columns.all + column;
    const float bias = a.bias[column];
    FourFlows value{};
    TWINBENCH_UNROLL
    for (int i = 0; i < kFlowsPerWarp; ++i)
      if (first + i < a.flows) value.of[i] = a.sums.plain[at + i * a.columns.all];
    TWINBENCH_UNROLL
    for (int i = 0; i < kFlowsPerWarp; ++i)
      if (first + i < a.flows)
        a.sums.store(at + i * a.columns.all, grad_activated(i) * kernels::gelu_derivative(value.of[i] + bias));
  }
};

}  // namespace twinbench::energy_flow::carrier_heads
