// Sums of the carrier heads' second layers (C08) of 32 flows a block: a warp the wide layers of four of them, whose
// shares of the sums a lane a flow then adds. In the namespace of the component that specifies it; the whole forward
// takes it too.
#pragma once

#include "kernels/common/bf16_pair.h"
#include "kernels/common/short_math.h"
#include "kernels/common/simt.h"
#include "kernels/common/warp_sums.h"
#include "kernels/energy_flow/common/head_columns.h"
#include "kernels/energy_flow/common/heads.h"

namespace twinbench::energy_flow::carrier_heads {

namespace simt = kernels::simt;

constexpr int kFlowsPerWarp = 4;  // one read of a weight serves them all
static_assert(kHeadThreads / simt::kWarpSize * kFlowsPerWarp == kFlowsPerBlock);

// The bias and the second layers' weights, kWidth values at a time.
template <int kWidth, class Vectors>
struct HeadWeights {
  Vectors bias, energy, displacement, gate;
};

// Heads: what ForwardArguments says of them, from `rule` to `out_bias`. With kWidth 4 rows and weights start at
// multiples of four floats, and the weights lie in dynamic shared memory; with kWidth 1 they are read where they are.
template <int kWidth>
struct HeadSums {
  using Values = kernels::Floats<kWidth>;

  // body(HeadWeights) once they are there for all threads.
  template <class Block, class Heads, class Body>
  static TWINBENCH_DEVICE void with_weights(Block& block, const Heads& a, Body body) {
    if constexpr (kWidth == 1) {
      const auto vectors = [](const float* from) { return reinterpret_cast<const Values*>(from); };
      body(HeadWeights<1, const Values*>{vectors(a.bias), vectors(a.energy_out_weight),
                                         vectors(a.displacement_out_weight), vectors(a.gate_out_weight)});
    } else {
      auto staged = simt::dynamic_shared<Values>(block);
      const int bias = a.columns.all / kWidth, energy = a.columns.energy_width / kWidth,
                head = a.columns.head_width / kWidth;
      TWINBENCH_ROLLED
      for (int i = simt::thread_rank(block); i < bias + energy + (a.rule.gate ? 4 : 3) * head; i += kHeadThreads) {
        const int of_energy = i - bias, of_displacement = of_energy - energy, of_gate = of_displacement - 3 * head;
        const float* from = of_energy < 0         ? a.bias + kWidth * i
                            : of_displacement < 0 ? a.energy_out_weight + kWidth * of_energy
                            : of_gate < 0         ? a.displacement_out_weight + kWidth * of_displacement
                                                  : a.gate_out_weight + kWidth * of_gate;
        staged[i] = kernels::load<kWidth>(from);
      }
      block.barrier();
      body(HeadWeights<kWidth, decltype(staged)>{staged, staged + bias, staged + (bias + energy),
                                                 staged + (bias + energy + 3 * head)});
    }
  }

  // The shares of this warp's four flows' sums, biases not included, in shared memory; the child's, which has no second
  // layer, is whole. Its sector of a row is read with the columns before it.
  template <class Block, class Heads, class Weights, class Shared>
  static TWINBENCH_DEVICE void second_layers(Block& block, const Heads& a, const Weights& weights, std::int64_t group,
                                             Shared shares) {
    const int lane = simt::lane(block), row = simt::warp(block) * kFlowsPerWarp;
    const std::int64_t first = group + row;
    if (first >= a.flows) return;  // whole warps
    const int energy = a.columns.energy_width / kWidth, head = a.columns.head_width / kWidth;
    float sums[kTrained * kFlowsPerWarp] = {};
    const int child = energy + head, vectors = child + (a.rule.gate ? kChildVectors : 0);
    over_columns<kSteps>(block, a, first, 0, vectors, child, weights.bias,
                         [&](const Values(&value)[kFlowsPerWarp], int v) {
                           if (v >= child) {
                             if (v > child) return;  // padding
                             TWINBENCH_UNROLL
                             for (int i = 0; i < kFlowsPerWarp; ++i)
                               shares[kChildSum * kRowOfSums + row + i] = value[i].of[0];
                             return;
                           }
                           if (v < energy) {
                             const Values weight = weights.energy[v];
                             add_products(sums, value, weight);
                             return;
                           }
                           TWINBENCH_UNROLL
                           for (int k = 0; k < 3; ++k) {
                             const Values weight = weights.displacement[v - energy + k * head];
                             add_products(sums + (1 + k) * kFlowsPerWarp, value, weight);
                           }
                         });
    const float share = kernels::scattered_sums(block, sums);  // of value lane / 2
    shares[(lane % 2 * kTrained + lane / 8) * kRowOfSums + row + lane / 2 % kFlowsPerWarp] = share;
    if (!a.rule.gate) return;
    float gates[kFlowsPerWarp] = {};
    over_columns<kGateSteps>(block, a, first, a.columns.gate(), head, head, weights.bias + a.columns.gate() / kWidth,
                             [&](const Values(&value)[kFlowsPerWarp], int v) {
                               const Values weight = weights.gate[v];
                               add_products(gates, value, weight);
                             });
    const float gate_share = kernels::scattered_sums(block, gates);  // of value lane / 8
    shares[(2 * kTrained + lane % kParts) * kRowOfSums + row + lane / kParts] = gate_share;
  }

  // Of the flow in this row of the block's.
  template <class Heads, class Shared>
  static TWINBENCH_DEVICE Sums<float> own_sums(const Heads& a, Shared shares, int row) {
    const auto sum_of = [&](int sum) {
      const float even = shares[sum * kRowOfSums + row], odd = shares[(kTrained + sum) * kRowOfSums + row];
      return even + odd + a.out_bias[sum];
    };
    Sums<float> own{sum_of(0), {sum_of(1), sum_of(2), sum_of(3)}, 0.0f, 0.0f};
    if (!a.rule.gate) return own;
    TWINBENCH_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const float share = shares[(2 * kTrained + part) * kRowOfSums + row];
      own.gate += share;
    }
    own.gate += a.out_bias[kTrained];
    const float child = shares[kChildSum * kRowOfSums + row];
    own.child = child;
    return own;
  }

 private:
  // Steps of a warp along a row whose loads are in flight together: the documents' rows in one, and the gate's head.
  static constexpr int kSteps = 3, kGateSteps = 1;
  static constexpr int kTrained = 4;                       // sums: energy, displacement x y z
  static constexpr int kParts = 8;                         // lanes whose shares of a flow's gate are added last
  static constexpr int kChildSum = 2 * kTrained + kParts;  // after the shares of the others
  static constexpr int kChildVectors = kWidth == 4 ? Columns::kChildColumns / kWidth : 1;
  static constexpr int kRowOfSums = 36;  // 32 flows; four more, so that the rows that a warp stores to differ in bank

  // use(values of `kWidth` columns of each of the warp's flows, vector) for `vectors` vectors from `column` on: the
  // first layers' sums with their bias, and activated where the vector is below `activated`. Past the last flow they
  // are those of another one. No load is in a branch, so that all of a step are on their way together: lanes past the
  // last vector read that one.
  template <int kSteps, class Block, class Heads, class Bias, class Use>
  static TWINBENCH_DEVICE void over_columns(Block& block, const Heads& a, std::int64_t first, std::int32_t column,
                                            int vectors, int activated, Bias bias, Use use) {
    const float* rows = a.sums + first * a.columns.all + column;
    TWINBENCH_ROLLED
    for (int start = 0; start < vectors; start += kSteps * simt::kWarpSize) {
      Values value[kSteps][kFlowsPerWarp];
      TWINBENCH_UNROLL
      for (int s = 0; s < kSteps; ++s) {
        const int v = start + s * simt::kWarpSize + simt::lane(block), there = v < vectors ? v : vectors - 1;
        TWINBENCH_UNROLL
        for (int i = 0; i < kFlowsPerWarp; ++i)
          value[s][i] = kernels::load<kWidth>(rows + (first + i < a.flows ? i : 0) * a.columns.all + kWidth * there);
      }
      TWINBENCH_UNROLL
      for (int s = 0; s < kSteps; ++s) {
        const int v = start + s * simt::kWarpSize + simt::lane(block);
        if (v >= vectors) continue;
        const Values b = bias[v];
        TWINBENCH_UNROLL
        for (int i = 0; i < kFlowsPerWarp; ++i)
          value[s][i] = kernels::map(value[s][i], b, [](float x, float own_bias) { return x + own_bias; });
        if (v < activated) {
          TWINBENCH_UNROLL
          for (int i = 0; i < kFlowsPerWarp; ++i) {
            value[s][i] = kernels::map(value[s][i], [](float x) { return kernels::short_gelu(x); });
            if (a.round) value[s][i] = kernels::rounded_to_bf16(value[s][i]);
          }
        }
        use(value[s], v);
      }
    }
  }

  static TWINBENCH_DEVICE void add_products(float* sums, const Values (&value)[kFlowsPerWarp], const Values& weight) {
    TWINBENCH_UNROLL
    for (int i = 0; i < kFlowsPerWarp; ++i) {
      TWINBENCH_UNROLL
      for (int j = 0; j < kWidth; ++j)
        sums[i] = kernels::multiply_add(value[i].of[j], static_cast<float>(weight.of[j]), sums[i]);
    }
  }

 public:
  static constexpr int kShares = (kChildSum + 1) * kRowOfSums;  // of a block, in shared memory
};

}  // namespace twinbench::energy_flow::carrier_heads
