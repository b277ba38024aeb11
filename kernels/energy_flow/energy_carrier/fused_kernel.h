// One whole layer of the energy carrier in bf16: both products on tensor cores, the gates in their epilogue.
//
// A block owns a tile of flows and hidden channels, with the three gate rows of each channel. Reset and update gates
// sum input and hidden products in one accumulator; the candidate keeps two, because the reset gate scales only the
// hidden one. Sums never leave the registers.
#pragma once

#include "kernels/common/bf16_pair.h"
#include "kernels/common/guard_values.h"
#include "kernels/common/tile_product.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/energy_carrier/arguments.h"
#include "kernels/energy_flow/energy_carrier/math.h"

namespace twinbench::energy_flow::energy_carrier {

namespace simt = kernels::simt;

// A block's warps lie in kFlowWarps rows and kChannelWarps columns; each has kFlowTiles x kChannelTiles tiles of 16
// flows x 8 channels, for each of four sums. Sizes of shared memory in values of bf16.
template <FusedTile kTile>
struct TileShape {
  static constexpr bool kSmall = kTile == FusedTile::kSmall;
  static constexpr int kFlowWarps = kSmall ? 4 : 2, kChannelWarps = kSmall ? 1 : 4;
  static constexpr int kFlowTiles = kSmall ? 1 : kTile == FusedTile::kLarge ? 4 : 5, kChannelTiles = 2;
  static constexpr int kThreads = kFlowWarps * kChannelWarps * simt::kWarpSize;
  static constexpr int kFlows = flows_of(kTile), kChannels = channels_of(kTile);
  static_assert(kFlows == kFlowWarps * kFlowTiles * 16 && kChannels == kChannelWarps * kChannelTiles * 8);
  static constexpr int kSlices = 4;  // of k in shared memory: three are on their way while one is multiplied
  static constexpr int kLeftValues = kFlows * kernels::kSliceDepth, kRightValues = 3 * kChannels * kernels::kSliceDepth;
  static constexpr int kSharedBytes = kSlices * (kLeftValues + kRightValues) * static_cast<int>(sizeof(std::uint16_t));
};

// Grid: channel tiles along x, flow tiles along y. Width and input_width are multiples of eight.
template <FusedTile kTile>
struct FusedGatesOf {
  using Tile = TileShape<kTile>;
  static constexpr int kSlices = Tile::kSlices;

  // A warp's share.
  struct GateSums {
    using Sum = simt::TileSum[Tile::kFlowTiles][Tile::kChannelTiles];
    Sum reset, update, candidate_input, candidate_hidden;
  };

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const FusedGatesArguments& a) const {
    Layer<Block> layer{block, a};
    GateSums sums{};
    const int input_slices = slices_of(a.input_width), slices = input_slices + slices_of(a.shape.width);
    TWINBENCH_UNROLL
    for (int slice = 0; slice < kSlices - 1; ++slice) layer.copy(slice, input_slices, slices);
    for (int slice = 0; slice < input_slices; ++slice)
      layer.step(slice, input_slices, slices, sums, sums.candidate_input);
    for (int slice = input_slices; slice < slices; ++slice)
      layer.step(slice, input_slices, slices, sums, sums.candidate_hidden);
    simt::async_wait<0>(block);
    layer.finish(sums);
    if (a.operand_above) layer.guard_above();
  }

 private:
  static TWINBENCH_DEVICE int slices_of(int inner) { return (inner + kernels::kSliceDepth - 1) / kernels::kSliceDepth; }

  template <class Block>
  struct Layer {
    Block& block;
    const FusedGatesArguments& a;
    const int thread = simt::thread_rank(block), lane = thread % simt::kWarpSize, warp = thread / simt::kWarpSize;
    const std::int64_t first_flow = std::int64_t{block.index().y} * Tile::kFlows;
    const int first_channel = static_cast<int>(block.index().x) * Tile::kChannels;
    const int warp_flow = warp / Tile::kChannelWarps * Tile::kFlowTiles * 16;  // within the tile
    const int warp_channel = warp % Tile::kChannelWarps * Tile::kChannelTiles * 8;

    TWINBENCH_DEVICE auto left(int slice) {
      return simt::dynamic_shared<std::uint16_t>(block) + slice % kSlices * (Tile::kLeftValues + Tile::kRightValues);
    }
    TWINBENCH_DEVICE auto right(int slice) { return left(slice) + Tile::kLeftValues; }

    // Starts the copies of a slice: of the input product first, then of the hidden one. A group even if none is left.
    TWINBENCH_DEVICE void copy(int slice, int input_slices, int slices) {
      if (slice < slices) {
        const bool input = slice < input_slices;
        const int inner = input ? a.input_width : a.shape.width;
        const int k = (input ? slice : slice - input_slices) * kernels::kSliceDepth;
        const std::uint16_t* rows = input ? a.input : a.hidden_operand;
        const std::uint16_t* weights = input ? a.weight_input : a.weight_hidden;
        kernels::copy_slice<Tile::kFlows, Tile::kThreads>(block, left(slice), thread, k, inner, rows, [&](int row) {
          const std::int64_t flow = first_flow + row;
          return flow < a.shape.flows ? rows + flow * inner : nullptr;
        });
        kernels::copy_slice<3 * Tile::kChannels, Tile::kThreads>(
            block, right(slice), thread, k, inner, weights, [&](int row) {
              const int gate = row / Tile::kChannels, channel = first_channel + row % Tile::kChannels;
              return channel < a.shape.width ? weights + (std::int64_t{gate} * a.shape.width + channel) * inner
                                             : nullptr;
            });
      }
      simt::async_commit(block);
    }

    // Adds a slice's products while later slices are on their way.
    TWINBENCH_DEVICE void step(int slice, int input_slices, int slices, GateSums& sums,
                               typename GateSums::Sum& candidate) {
      simt::async_wait<kSlices - 2>(block);
      block.barrier();  // the slice is there for all, and all are done with the one before, whose place is copied to
      copy(slice + kSlices - 1, input_slices, slices);
      const auto rows = left(slice), weights = right(slice);
      TWINBENCH_UNROLL
      for (int half = 0; half < kernels::kSliceDepth / 16; ++half) {
        simt::LeftTile flows[Tile::kFlowTiles];
        TWINBENCH_UNROLL
        for (int i = 0; i < Tile::kFlowTiles; ++i)
          flows[i] = kernels::load_left(block, rows, lane, warp_flow + 16 * i, half);
        const auto multiply = [&](typename GateSums::Sum& sum, int gate) {
          TWINBENCH_UNROLL
          for (int j = 0; j < Tile::kChannelTiles; j += 2) {
            const kernels::TwoRightTiles channels =
                kernels::load_right(block, weights, lane, gate * Tile::kChannels + warp_channel + 8 * j, half);
            TWINBENCH_UNROLL
            for (int i = 0; i < Tile::kFlowTiles; ++i) {
              simt::multiply_bf16(block, sum[i][j], flows[i], channels.of[0]);
              simt::multiply_bf16(block, sum[i][j + 1], flows[i], channels.of[1]);
            }
          }
        };
        multiply(sums.reset, 0);
        multiply(sums.update, 1);
        multiply(candidate, 2);
      }
    }

    // The gates, two tiles of eight channels at a time: every access fills 32-byte sectors, of bf16 too.
    TWINBENCH_DEVICE void finish(const GateSums& sums) {
      TWINBENCH_UNROLL
      for (int j = 0; j < Tile::kChannelTiles; j += 2) {
        const int first = first_channel + warp_channel + 8 * j, channel = first + lane % 4 * 2;
        const bool second = first + 8 < a.shape.width;
        if (first >= a.shape.width) continue;  // of the whole warp
        const Biases biases[2] = {biases_of(channel), biases_of(second ? channel + 8 : channel)};
        States hidden;
        TWINBENCH_UNROLL
        for (int i = 0; i < Tile::kFlowTiles; ++i) {
          if (i % kStateTiles == 0) load_states(i, channel, second, hidden);
          TWINBENCH_UNROLL
          for (int half = 0; half < 2; ++half) {
            const std::int64_t flow = first_flow + warp_flow + 16 * i + 8 * half + lane / 4;
            std::uint32_t words[2] = {};
            TWINBENCH_UNROLL
            for (int k = 0; k < 2; ++k)
              if (flow < a.shape.flows && (k == 0 || second))
                words[k] = finish_pair(flow, channel + 8 * k, hidden.of[i % kStateTiles][half][k], biases[k],
                                       sums.reset[i][j + k], sums.update[i][j + k], sums.candidate_input[i][j + k],
                                       sums.candidate_hidden[i][j + k], 2 * half);
            if (a.operand) store_operand(flow, first, second, words);
          }
        }
      }
    }

    // The guard of the tile's flows and channels in the layer above: their registers are free now, so that all of a
    // thread's loads are on their way together. None is in a branch: past the last flow or channel they read the last.
    TWINBENCH_DEVICE void guard_above() {
      constexpr int kVectorsARow = Tile::kChannels / 4, kEach = Tile::kFlows * kVectorsARow / Tile::kThreads;
      static_assert(kEach * Tile::kThreads == Tile::kFlows * kVectorsARow && Tile::kThreads % kVectorsARow == 0);
      const int given = first_channel + thread % kVectorsARow * 4;
      const bool valid = given < a.shape.width;
      const int channel = valid ? given : a.shape.width - 4;
      const std::int64_t first = first_flow + thread / kVectorsARow;
      const auto flow = [&](int i) { return first + i * (Tile::kThreads / kVectorsARow); };
      kernels::Floats<4> raw[kEach];
      TWINBENCH_UNROLL
      for (int i = 0; i < kEach; ++i) {
        const std::int64_t there = flow(i) < a.shape.flows ? flow(i) : a.shape.flows - 1;
        raw[i] = kernels::load<4>(a.hidden_above + there * a.shape.width + channel);
      }
      TWINBENCH_UNROLL
      for (int i = 0; i < kEach; ++i) {
        if (!valid || flow(i) >= a.shape.flows) continue;
        kernels::store_bf16(a.operand_above + flow(i) * a.shape.width + channel, kernels::guarded(raw[i], kGuardLimit));
        if (const std::int32_t hits = kernels::nan_of(raw[i]); hits > 0)
          simt::atomic_add(block, a.guard_hits + flow(i), hits);
      }
    }

    // The given states of the lane's flows and channels, of as many tiles of flows as leave the sums their registers:
    // all loads are on their way before the first is waited for.
    static constexpr int kStateTiles = Tile::kFlowTiles > 4 ? 3 : Tile::kFlowTiles;
    struct States {
      kernels::Floats<2> of[kStateTiles][2][2];  // tile of flows, half of it, tile of channels
    };
    TWINBENCH_DEVICE void load_states(int tile, int channel, bool second, States& hidden) const {
      TWINBENCH_UNROLL
      for (int i = 0; i < kStateTiles && tile + i < Tile::kFlowTiles; ++i) {
        TWINBENCH_UNROLL
        for (int half = 0; half < 2; ++half) {
          const std::int64_t flow = first_flow + warp_flow + 16 * (tile + i) + 8 * half + lane / 4;
          TWINBENCH_UNROLL
          for (int k = 0; k < 2; ++k) {
            hidden.of[i][half][k] = {};
            if (flow < a.shape.flows && (k == 0 || second))
              hidden.of[i][half][k] = kernels::load<2>(a.hidden + flow * a.shape.width + channel + 8 * k);
          }
        }
      }
    }

    // Of a lane's two words, of two channels each, one goes to its neighbour: each stores four channels in a row.
    TWINBENCH_DEVICE void store_operand(std::int64_t flow, int first, bool second, const std::uint32_t (&words)[2]) {
      const bool odd = lane % 2 != 0;
      const std::uint32_t other = block.shuffle_xor(odd ? words[0] : words[1], 1);
      if (flow >= a.shape.flows || (odd && !second)) return;
      std::uint16_t* to = a.operand + flow * a.shape.width + first + (odd ? 8 : 0) + lane % 4 / 2 * 4;
      kernels::store(to, odd ? four_of(other, words[1]) : four_of(words[0], other));
    }
    static TWINBENCH_DEVICE kernels::Vector<std::uint16_t, 4> four_of(std::uint32_t lower, std::uint32_t upper) {
      return {{static_cast<std::uint16_t>(lower), static_cast<std::uint16_t>(lower >> 16),
               static_cast<std::uint16_t>(upper), static_cast<std::uint16_t>(upper >> 16)}};
    }

    using Pair = kernels::Floats<2>;
    struct Biases {
      Pair reset, update, candidate_input, candidate_hidden;
    };
    TWINBENCH_DEVICE Biases biases_of(int channel) const {
      const int width = a.shape.width;
      const auto both = [&](int at) {
        return kernels::map(kernels::load<2>(a.bias_input + at), kernels::load<2>(a.bias_hidden + at),
                            [](float x, float h) { return x + h; });
      };
      return {both(channel), both(width + channel), kernels::load<2>(a.bias_input + 2 * width + channel),
              kernels::load<2>(a.bias_hidden + 2 * width + channel)};
    }

    // Returns the next state of both channels in bf16, the first one in the lower half.
    TWINBENCH_DEVICE std::uint32_t finish_pair(std::int64_t flow, int channel, const Pair& raw, const Biases& biases,
                                               const simt::TileSum& reset, const simt::TileSum& update,
                                               const simt::TileSum& candidate_input,
                                               const simt::TileSum& candidate_hidden, int from) const {
      const std::int64_t width = a.shape.width, at = flow * width + channel;
      const Pair hidden = kernels::guarded(raw, kGuardLimit);
      Pair next, bounded, kept_reset, kept_update, kept_candidate, kept_hidden;
      TWINBENCH_UNROLL
      for (int k = 0; k < 2; ++k) {
        kept_hidden.of[k] = candidate_hidden.of[from + k] + biases.candidate_hidden.of[k];
        const Channel<float> result = short_gru_channel(
            reset.of[from + k] + biases.reset.of[k], update.of[from + k] + biases.update.of[k],
            candidate_input.of[from + k] + biases.candidate_input.of[k], kept_hidden.of[k], hidden.of[k]);
        next.of[k] = result.next;
        bounded.of[k] = kernels::guard(result.next, kGuardLimit);
        kept_reset.of[k] = result.reset;
        kept_update.of[k] = result.update;
        kept_candidate.of[k] = result.candidate;
      }
      kernels::store(a.next + at, bounded);
      const std::uint32_t word = kernels::bf16_pair(next.of[0], next.of[1]);
      if (!a.kept) return word;
      float* kept = a.kept + 4 * flow * width + channel;
      kernels::store(kept, kept_reset);
      kernels::store(kept + width, kept_update);
      kernels::store(kept + 2 * width, kept_candidate);
      kernels::store(kept + 3 * width, kept_hidden);
      return word;
    }
  };
};

// Threads are TileShape's: the checks of launches read numbers.
constexpr int kSmallThreads = 128;
constexpr int kLargeThreads = 256;
constexpr int kTallThreads = 256;
struct FusedGatesSmall : FusedGatesOf<FusedTile::kSmall> {
  static constexpr int kMaxThreads = kSmallThreads;
  static std::int64_t documented_shared_bytes() { return Tile::kSharedBytes; }
  static_assert(kMaxThreads == Tile::kThreads);
};
struct FusedGatesLarge : FusedGatesOf<FusedTile::kLarge> {
  static constexpr int kMaxThreads = kLargeThreads;
  static std::int64_t documented_shared_bytes() { return Tile::kSharedBytes; }
  static_assert(kMaxThreads == Tile::kThreads);
};
struct FusedGatesTall : FusedGatesOf<FusedTile::kTall> {
  static constexpr int kMaxThreads = kTallThreads;
  static std::int64_t documented_shared_bytes() { return Tile::kSharedBytes; }
  static_assert(kMaxThreads == Tile::kThreads);
};

}  // namespace twinbench::energy_flow::energy_carrier
