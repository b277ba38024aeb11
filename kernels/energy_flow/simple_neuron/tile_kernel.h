// The simple neuron's forward kernel in bf16 for many flows at the documents' widths: a warp takes 32 flows, two tiles
// of 16, through the layers on tensor cores.
//
// A layer's sums lie in the registers in which the next layer takes its operands: between the state and the features
// nothing is exchanged but the sums of a row's four lanes.
#pragma once

#include "kernels/common/bf16_pair.h"
#include "kernels/common/layer_norm.h"
#include "kernels/common/short_math.h"
#include "kernels/common/tile_product.h"
#include "kernels/common/vectors.h"
#include "kernels/common/warp_sums.h"
#include "kernels/energy_flow/simple_neuron/arguments.h"

namespace twinbench::energy_flow::simple_neuron {

namespace simt = kernels::simt;

// Grid: any number of blocks, each warp takes every so manieth group of 32 flows. Position and energy
// are contiguous and start at multiples of 16 bytes.
struct ForwardTiles {
  static constexpr int kMaxThreads = kTileThreads;
  static std::int64_t documented_shared_bytes() { return tile_shared_bytes(); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments<float>& a) const {
    stage_parameters(block, a);
    const std::int64_t step = std::int64_t{block.grid().x} * kTileWarps;
    std::int64_t group = std::int64_t{block.index().x} * kTileWarps + simt::warp(block);
    for (; group < tile_groups(a.flows); group += step) {
      Operand operand;
      load_state(block, a, group * kTileFlows, operand);
      hidden_layer<1>(block, 0, operand);
      hidden_layer<kSteps>(block, 1, operand);
      store_features(block, a, group * kTileFlows, operand);
    }
  }

 private:
  static constexpr int kTiles = kTileFlows / 16, kRows = 2 * kTiles;  // of 16 flows; rows of a lane
  static constexpr int kSteps = kManyHidden / 16;                     // of a product's inner axis
  static constexpr int kColumns = kManyHidden / 8;                    // tiles of eight channels
  static constexpr int kBatch = 3;                                    // loads of a thread in flight: all it has
  static_assert(kManyHidden == kernels::kSliceDepth && kRows == 4);

  using Four = kernels::Floats<4>;
  using Pair = kernels::Floats<2>;
  using Words = kernels::Vector<std::uint32_t, 4>;
  using Operand = simt::LeftTile[kTiles][kSteps];  // 32 flows, 32 channels

  template <class Block>
  static TWINBENCH_DEVICE void stage_parameters(Block& block, const Arguments<float>& a) {
    auto fours = simt::dynamic_shared<Four>(block);
    kernels::in_batches<kBatch>(
        simt::thread_rank(block), kTileThreads, TilePack::kTotal / 4,
        [&](int i) { return kernels::load<4>(a.tile_pack + 4 * i); },
        [&](int i, const Four& values) { fours[i] = values; });
    block.barrier();
  }

  // The encoded state of flows [first, first + 32) as the first layer takes it, zeros past the last flow.
  template <class Block>
  static TWINBENCH_DEVICE void load_state(Block& block, const Arguments<float>& a, std::int64_t first,
                                          Operand& operand) {
    constexpr int kPositions = 3 * kTileFlows / 4;  // vectors; then those of the energies
    const int lane = simt::lane(block), warp = simt::warp(block);
    auto given_fours = simt::dynamic_shared<Four>(block, TileShared::given(warp));
    auto given = simt::dynamic_shared<float>(block, TileShared::given(warp));
    auto encoded = simt::dynamic_shared<Words>(block, TileShared::encoded(warp));
    const int count = a.flows - first < kTileFlows ? static_cast<int>(a.flows - first) : kTileFlows;
    const bool is_energy = lane >= kPositions;
    const float* from = is_energy ? a.energy.data + first : a.position.data + 3 * first;
    const int at = 4 * (is_energy ? lane - kPositions : lane), valid = is_energy ? count : 3 * count;
    Four values{};
    if (at + 4 <= valid) {
      values = kernels::load<4>(from + at);
    } else {
      for (int i = 0; i < 4; ++i)
        if (at + i < valid) values.of[i] = from[at + i];
    }
    given_fours[lane] = values;
    block.warp_barrier();
    const float x = given[3 * lane], y = given[3 * lane + 1], z = given[3 * lane + 2];
    const float energy = given[3 * kTileFlows + lane];
    const std::uint32_t xy = kernels::bf16_pair(x, y), z_only = kernels::bf16_pair(z, 0.0f);
    const float position[3] = {kernels::low_of_pair(xy), kernels::high_of_pair(xy), kernels::low_of_pair(z_only)};
    auto weights = simt::dynamic_shared<Four>(block);
    const Four w[3] = {weights[0], weights[1], weights[2]};  // [3 in][3 out], then the bias
    float state[3];
    TWINBENCH_UNROLL
    for (int c = 0; c < 3; ++c) {
      state[c] = w[2].of[1 + c];
      TWINBENCH_UNROLL
      for (int k = 0; k < 3; ++k)
        state[c] = kernels::multiply_add(w[(3 * k + c) / 4].of[(3 * k + c) % 4], position[k], state[c]);
    }
    encoded[lane] = Words{{kernels::bf16_pair(state[0], state[1]), kernels::bf16_pair(state[2], energy), 0, 0}};
    block.warp_barrier();
    std::uint32_t words[4];
    auto rows = simt::dynamic_shared<std::uint32_t>(block, TileShared::encoded(warp));
    simt::load_matrices(block, rows + 4 * lane, words);
    TWINBENCH_UNROLL
    for (int t = 0; t < kTiles; ++t) operand[t][0] = {{words[2 * t], words[2 * t + 1], 0, 0}};
  }

  // sums[t][n] = bias + operand * weights for the kPairs pairs of column tiles from `channel` on.
  template <int kInnerSteps, int kPairs, class Block>
  static TWINBENCH_DEVICE void multiply(Block& block, int layer, int bias, int channel, const Operand& operand,
                                        simt::TileSum (&sums)[kTiles][2 * kPairs]) {
    const int lane = simt::lane(block);
    auto biases = simt::dynamic_shared<Pair>(block) + (bias + channel) / 2 + lane % 4;
    auto slice = simt::dynamic_shared<std::uint16_t>(block, TilePack::slice(layer));
    TWINBENCH_UNROLL
    for (int j = 0; j < kPairs; ++j) {
      const Pair start[2] = {biases[8 * j], biases[8 * j + 4]};
      TWINBENCH_UNROLL
      for (int step = 0; step < kInnerSteps; ++step) {
        const kernels::TwoRightTiles right = kernels::load_right(block, slice, lane, channel + 16 * j, step);
        TWINBENCH_UNROLL
        for (int t = 0; t < kTiles; ++t) {
          TWINBENCH_UNROLL
          for (int k = 0; k < 2; ++k) {
            simt::TileSum& sum = sums[t][2 * j + k];
            const Pair& b = start[k];
            if (step == 0)
              simt::multiply_bf16(block, sum, operand[t][0], right.of[k],
                                  simt::TileSum{{b.of[0], b.of[1], b.of[0], b.of[1]}});
            else
              simt::multiply_bf16(block, sum, operand[t][step], right.of[k]);
          }
        }
      }
    }
  }

  // rows[i] = finish(mean over the 32 channels of row i); given are the lane's shares of the sums. Each lane of a row
  // finishes another one of its four rows.
  template <class Block, class Finish>
  static TWINBENCH_DEVICE void over_rows(Block& block, float (&rows)[kRows], Finish finish) {
    const int lane = simt::lane(block);
    const float own = finish(kernels::scattered_sums<kRows / 2>(block, rows) / static_cast<float>(kManyHidden));
    TWINBENCH_UNROLL
    for (int row = 0; row < kRows; ++row) rows[row] = block.shuffle_index(own, lane / 4 * 4 + row);
  }

  // operand = bf16(GELU(LN(weight * operand + bias))).
  template <int kInnerSteps, class Block>
  static TWINBENCH_DEVICE void hidden_layer(Block& block, int layer, Operand& operand) {
    simt::TileSum sums[kTiles][kColumns];
    multiply<kInnerSteps, kColumns / 2>(block, layer, TilePack::bias(layer), 0, operand, sums);
    float mean[kRows] = {}, inverse[kRows] = {};
    each_value(sums, [&](int row, float& value) { mean[row] += value; });
    over_rows(block, mean, [](float of_row) { return of_row; });
    each_value(sums, [&](int row, float& value) {
      value -= mean[row];
      inverse[row] = kernels::multiply_add(value, value, inverse[row]);
    });
    over_rows(block, inverse, [](float variance) { return kernels::inverse_deviation(variance); });
    const int lane = simt::lane(block);
    auto gains = simt::dynamic_shared<Pair>(block) + TilePack::gain(layer) / 2 + lane % 4;
    auto shifts = simt::dynamic_shared<Pair>(block) + TilePack::shift(layer) / 2 + lane % 4;
    TWINBENCH_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      const Pair gain = gains[4 * n], shift = shifts[4 * n];
      TWINBENCH_UNROLL
      for (int row = 0; row < kRows; ++row) {
        const int t = row / 2, half = row % 2;
        float value[2];
        TWINBENCH_UNROLL
        for (int i = 0; i < 2; ++i)
          value[i] =
              kernels::rough_gelu(kernels::scaled(sums[t][n].of[2 * half + i] * inverse[row], gain.of[i], shift.of[i]));
        operand[t][n / 2].of[half + n % 2 * 2] = kernels::bf16_pair(value[0], value[1]);
      }
    }
  }

  // use(row of the lane, value) for its eight values of each row.
  template <class Use>
  static TWINBENCH_DEVICE void each_value(simt::TileSum (&sums)[kTiles][kColumns], Use use) {
    TWINBENCH_UNROLL
    for (int row = 0; row < kRows; ++row) {
      TWINBENCH_UNROLL
      for (int n = 0; n < kColumns; ++n) {
        TWINBENCH_UNROLL
        for (int i = 0; i < 2; ++i) use(row, sums[row / 2][n].of[row % 2 * 2 + i]);
      }
    }
  }

  // A row's four lanes store a sector of it together.
  template <class Block>
  static TWINBENCH_DEVICE void store_features(Block& block, const Arguments<float>& a, std::int64_t first,
                                              const Operand& operand) {
    const int lane = simt::lane(block);
    TWINBENCH_UNROLL
    for (int channel = 0; channel < kManyOutputs; channel += 16) {
      simt::TileSum sums[kTiles][2];
      multiply<kSteps, 1>(block, 2, TilePack::bias_out(), channel, operand, sums);
      TWINBENCH_UNROLL
      for (int row = 0; row < kRows; ++row) {
        const std::int64_t flow = first + row * 8 + lane / 4;
        if (flow >= a.flows) continue;
        float* to = a.features + flow * kManyOutputs + channel + lane % 4 * 2;
        TWINBENCH_UNROLL
        for (int k = 0; k < 2; ++k) {
          const float* value = sums[row / 2][k].of + row % 2 * 2;
          kernels::store(to + 8 * k, Pair{{value[0], value[1]}});
        }
      }
    }
  }
};

}  // namespace twinbench::energy_flow::simple_neuron
