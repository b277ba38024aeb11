// One whole layer of the energy carrier in bf16: both products on tensor cores, the gates in their epilogue.
//
// A block owns kTileFlows flows and kTileChannels hidden channels, with the three gate rows of each channel. Reset and
// update gates sum input and hidden products in one accumulator; the candidate keeps two, because the reset gate scales
// only the hidden one. Sums never leave the registers.
#pragma once

#include "kernels/common/tile_product.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/energy_carrier/arguments.h"
#include "kernels/energy_flow/energy_carrier/math.h"

namespace twinbench::energy_flow::energy_carrier {

namespace simt = kernels::simt;

constexpr int kFusedThreads = 256;
constexpr int kTileFlows = 128;
constexpr int kTileChannels = 64;
constexpr int kSlices = 3;  // of k in shared memory: two are on their way while one is multiplied
constexpr int kLeftValues = kTileFlows * kernels::kSliceDepth, kRightValues = 3 * kTileChannels * kernels::kSliceDepth;
constexpr int kFusedSharedBytes = kSlices * (kLeftValues + kRightValues) * static_cast<int>(sizeof(std::uint16_t));

// A warp's share: 2 x 4 tiles of 16 flows x 8 channels for each of four sums.
struct GateSums {
  static constexpr int kFlowTiles = 2, kChannelTiles = 4;
  using Sum = simt::TileSum[kFlowTiles][kChannelTiles];
  Sum reset, update, candidate_input, candidate_hidden;
};

// Grid: channel tiles along x, flow tiles along y. Width and input_width are multiples of eight.
struct FusedGates {
  static constexpr int kMaxThreads = kFusedThreads;
  static std::int64_t documented_shared_bytes() { return kFusedSharedBytes; }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const FusedGatesArguments& a) const {
    Layer<Block> layer{block, a};
    GateSums sums{};
    const int input_slices = slices_of(a.input_width), slices = input_slices + slices_of(a.shape.width);
    for (int slice = 0; slice < kSlices - 1; ++slice) layer.copy(slice, input_slices, slices);
    for (int slice = 0; slice < input_slices; ++slice)
      layer.step(slice, input_slices, slices, sums, sums.candidate_input);
    for (int slice = input_slices; slice < slices; ++slice)
      layer.step(slice, input_slices, slices, sums, sums.candidate_hidden);
    simt::async_wait<0>(block);
    layer.finish(sums);
  }

 private:
  static TWINBENCH_DEVICE int slices_of(int inner) { return (inner + kernels::kSliceDepth - 1) / kernels::kSliceDepth; }

  template <class Block>
  struct Layer {
    Block& block;
    const FusedGatesArguments& a;
    const int thread = simt::thread_rank(block), lane = thread % simt::kWarpSize, warp = thread / simt::kWarpSize;
    const std::int64_t first_flow = std::int64_t{block.index().y} * kTileFlows;
    const int first_channel = static_cast<int>(block.index().x) * kTileChannels;
    const int warp_flow = warp / 2 * 32, warp_channel = warp % 2 * 32;  // within the tile

    TWINBENCH_DEVICE auto left(int slice) {
      return simt::dynamic_shared<std::uint16_t>(block) + slice % kSlices * (kLeftValues + kRightValues);
    }
    TWINBENCH_DEVICE auto right(int slice) { return left(slice) + kLeftValues; }

    // Starts the copies of a slice: of the input product first, then of the hidden one. A group even if none is left.
    TWINBENCH_DEVICE void copy(int slice, int input_slices, int slices) {
      if (slice < slices) {
        const bool input = slice < input_slices;
        const int inner = input ? a.input_width : a.shape.width;
        const int k = (input ? slice : slice - input_slices) * kernels::kSliceDepth;
        const std::uint16_t* rows = input ? a.input : a.hidden_operand;
        const std::uint16_t* weights = input ? a.weight_input : a.weight_hidden;
        kernels::copy_slice<kTileFlows, kFusedThreads>(block, left(slice), thread, k, inner, rows, [&](int row) {
          const std::int64_t flow = first_flow + row;
          return flow < a.shape.flows ? rows + flow * inner : nullptr;
        });
        kernels::copy_slice<3 * kTileChannels, kFusedThreads>(
            block, right(slice), thread, k, inner, weights, [&](int row) {
              const int gate = row / kTileChannels, channel = first_channel + row % kTileChannels;
              return channel < a.shape.width ? weights + (std::int64_t{gate} * a.shape.width + channel) * inner
                                             : nullptr;
            });
      }
      simt::async_commit(block);
    }

    // Adds a slice's products while later slices are on their way.
    TWINBENCH_DEVICE void step(int slice, int input_slices, int slices, GateSums& sums, GateSums::Sum& candidate) {
      simt::async_wait<kSlices - 2>(block);
      block.barrier();  // the slice is there for all, and all are done with the one before, whose place is copied to
      copy(slice + kSlices - 1, input_slices, slices);
      const auto rows = left(slice), weights = right(slice);
      TWINBENCH_UNROLL
      for (int half = 0; half < kernels::kSliceDepth / 16; ++half) {
        simt::LeftTile flows[GateSums::kFlowTiles];
        TWINBENCH_UNROLL
        for (int i = 0; i < GateSums::kFlowTiles; ++i)
          flows[i] = kernels::load_left(block, rows, lane, warp_flow + 16 * i, half);
        const auto multiply = [&](GateSums::Sum& sum, int gate) {
          TWINBENCH_UNROLL
          for (int j = 0; j < GateSums::kChannelTiles; j += 2) {
            const kernels::TwoRightTiles channels =
                kernels::load_right(block, weights, lane, gate * kTileChannels + warp_channel + 8 * j, half);
            TWINBENCH_UNROLL
            for (int i = 0; i < GateSums::kFlowTiles; ++i) {
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

    // The gates, two neighbouring channels of a flow at a time: every access is a whole 32-byte sector of fp32.
    TWINBENCH_DEVICE void finish(const GateSums& sums) {
      TWINBENCH_UNROLL
      for (int j = 0; j < GateSums::kChannelTiles; ++j) {
        const int channel = first_channel + warp_channel + 8 * j + lane % 4 * 2;
        if (channel >= a.shape.width) continue;  // widths are even
        const Biases biases = biases_of(channel);
        TWINBENCH_UNROLL
        for (int i = 0; i < GateSums::kFlowTiles; ++i) {
          TWINBENCH_UNROLL
          for (int half = 0; half < 2; ++half) {
            const std::int64_t flow = first_flow + warp_flow + 16 * i + 8 * half + lane / 4;
            if (flow < a.shape.flows)
              finish_pair(flow, channel, biases, sums.reset[i][j], sums.update[i][j], sums.candidate_input[i][j],
                          sums.candidate_hidden[i][j], 2 * half);
          }
        }
      }
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

    TWINBENCH_DEVICE void finish_pair(std::int64_t flow, int channel, const Biases& biases, const simt::TileSum& reset,
                                      const simt::TileSum& update, const simt::TileSum& candidate_input,
                                      const simt::TileSum& candidate_hidden, int from) const {
      const std::int64_t width = a.shape.width, at = flow * width + channel;
      const Pair hidden = kernels::load<2>(a.hidden + at);
      Pair next, guarded, kept_reset, kept_update, kept_candidate, kept_hidden;
      TWINBENCH_UNROLL
      for (int k = 0; k < 2; ++k) {
        kept_hidden.of[k] = candidate_hidden.of[from + k] + biases.candidate_hidden.of[k];
        const Channel<float> result =
            gru_channel(reset.of[from + k] + biases.reset.of[k], update.of[from + k] + biases.update.of[k],
                        candidate_input.of[from + k] + biases.candidate_input.of[k], kept_hidden.of[k], hidden.of[k]);
        next.of[k] = result.next;
        guarded.of[k] = kernels::guard(result.next, kGuardLimit);
        kept_reset.of[k] = result.reset;
        kept_update.of[k] = result.update;
        kept_candidate.of[k] = result.candidate;
      }
      kernels::store(a.next + at, guarded);
      kernels::store(a.operand, at, next);
      if (!a.kept) return;
      float* kept = a.kept + 4 * flow * width + channel;
      kernels::store(kept, kept_reset);
      kernels::store(kept + width, kept_update);
      kernels::store(kept + 2 * width, kept_candidate);
      kernels::store(kept + 3 * width, kept_hidden);
    }
  };
};

}  // namespace twinbench::energy_flow::energy_carrier
