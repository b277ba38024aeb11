// Back through a recurrent layer: its states where they are not on the tape, its gates, a thread four channels of a row
// each, and the products of the gates' gradients with the weights, in the whole forward's tiles.
#pragma once

#include "kernels/common/bf16_vectors.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/common/flow_tile_kernel.h"
#include "kernels/energy_flow/common/gru_gradients.h"
#include "kernels/energy_flow/flow_backward/arguments.h"

namespace twinbench::energy_flow::flow_backward {

namespace simt = kernels::simt;

constexpr int kGateThreads = 256;

// Threads that share a row, and rows that a block takes.
TWINBENCH_HOST_DEVICE int lanes_of_row(std::int32_t stride) {
  return stride / 4 < kGateThreads ? stride / 4 : kGateThreads;
}
TWINBENCH_HOST_DEVICE int rows_of_block(std::int32_t stride) { return kGateThreads / lanes_of_row(stride); }

// Grid: rows_of_block(stride) rows a block, for as many as there can be.
struct GatesBack {
  static constexpr int kMaxThreads = kGateThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const GatesBackArguments& a) const {
    const int lanes = lanes_of_row(a.stride), each = rows_of_block(a.stride), thread = simt::thread_rank(block);
    const std::int64_t row = std::int64_t{block.index().x} * each + thread / lanes;
    if (thread / lanes >= each || row >= *a.tape.total) return;
    const std::int32_t source = a.tape.source[row];
    const std::int64_t slot = a.tape.slot[row];
    for (std::int32_t channel = thread % lanes * 4; channel < a.stride; channel += lanes * 4)
      through(a, row, slot, source, channel);
  }

 private:
  using Values = kernels::Floats<4>;

  static TWINBENCH_DEVICE Values of_children(const GatesBackArguments& a, std::int64_t row, std::int32_t channel) {
    Values sum{};
    if (a.tape.requests[row] == 0) return sum;
    const std::int64_t first = a.tape.first_child[row], children = a.tape.children[row];
    for (std::int64_t child = first; child < first + children; ++child)
      sum = kernels::map(sum, kernels::load<4>(a.hidden + child * a.stride + channel),
                         [](float so_far, float value) { return so_far + value; });
    return sum;
  }

  static TWINBENCH_DEVICE void through(const GatesBackArguments& a, std::int64_t row, std::int64_t slot,
                                       std::int64_t source, std::int32_t channel) {
    const std::int64_t stride = a.stride;
    const float* const gates = a.gates + 4 * row * stride + channel;
    const Values reset = kernels::load<4>(gates), update = kernels::load<4>(gates + stride),
                 candidate = kernels::load<4>(gates + 2 * stride), from_state = kernels::load<4>(gates + 3 * stride),
                 own = kernels::load<4>(a.hidden + slot * stride + channel),
                 above = kernels::load<4>(a.above + row * stride + channel);
    Values state{};
    if (source >= 0) {
      const std::int64_t at = source * stride + channel;
      state = a.stored != nullptr ? kernels::load_bf16<4>(a.stored + at) : kernels::load<4>(a.state + at);
    }
    const Values children = of_children(a, row, channel);
    Values of_reset, of_update, of_candidate, of_part, direct;
    TWINBENCH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const energy_carrier::ChannelGradient<float> grad = energy_carrier::guarded_channel_gradient(
          reset.of[i], update.of[i], candidate.of[i], from_state.of[i],
          kernels::guard(state.of[i], energy_carrier::kGuardLimit), own.of[i] + children.of[i], above.of[i], a.top);
      of_reset.of[i] = grad.reset_sum;
      of_update.of[i] = grad.update_sum;
      of_candidate.of[i] = grad.candidate_input;
      of_part.of[i] = grad.candidate_hidden;
      direct.of[i] = grad.hidden;
    }
    const std::int64_t at = 3 * row * stride + channel;
    kernels::store(a.of_input + at, of_reset);
    kernels::store(a.of_input + at + stride, of_update);
    kernels::store(a.of_input + at + 2 * stride, of_candidate);
    kernels::store(a.of_state + at, of_reset);
    kernels::store(a.of_state + at + stride, of_update);
    kernels::store(a.of_state + at + 2 * stride, of_part);
    kernels::store(a.hidden + slot * stride + channel, direct);
  }
};

// Grid: (rows_of_block(stride) rows a block, for as many as there can be; layers).
struct NextStates {
  static constexpr int kMaxThreads = kGateThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const NextStatesArguments& a) const {
    const int lanes = lanes_of_row(a.stride), each = rows_of_block(a.stride), thread = simt::thread_rank(block);
    const std::int64_t row = std::int64_t{block.index().x} * each + thread / lanes;
    if (thread / lanes >= each || row >= *a.total) return;
    const std::int64_t stride = a.stride, source = a.source[row], layer = block.index().y * a.slots * stride;
    const std::uint16_t* const stored = a.stored + layer + source * stride;
    const float* const gates = a.gates + 4 * (layer + row * stride);
    for (std::int32_t channel = thread % lanes * 4; channel < a.stride; channel += lanes * 4) {
      const kernels::Floats<4> update = kernels::load<4>(gates + stride + channel),
                               candidate = kernels::load<4>(gates + 2 * stride + channel);
      kernels::Floats<4> state{}, next;
      if (source >= 0) state = kernels::load_bf16<4>(stored + channel);
      TWINBENCH_UNROLL
      for (int i = 0; i < 4; ++i)
        next.of[i] = energy_carrier::next_state(update.of[i], candidate.of[i],
                                                kernels::guard(state.of[i], energy_carrier::kGuardLimit));
      kernels::store(a.next + layer + row * stride + channel, next);
    }
  }
};

// Grid: (column tiles of the wider product for every kTileFlows rows that there can be, products).
template <bool kTf32>
struct ProductsAs {
  static constexpr int kMaxThreads = flow_forward::kTileThreads;
  static constexpr int kMinBlocksPerSm = 3;
  static std::int64_t documented_shared_bytes() { return flow_forward::kTileBytes; }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ProductsArguments& a) const {
    constexpr flow_forward::StateAs kNone = flow_forward::StateAs::kFloat;
    using Tile = flow_forward::FlowTile<Block, kNone, kTf32>;
    const ProductArguments own = block.index().y == 0 ? a.of[0] : a.of[1];
    flow_forward::over_tile<kNone, kTf32>(block, own.tile, flow_forward::column_tiles(own.tile), [&](Tile& tile) {
      typename Tile::Sums sums[3] = {};
      TWINBENCH_ROLLED
      for (int slice = 0; slice < tile.slices; ++slice) tile.step(slice, sums[0], sums[1], sums[2]);
      TWINBENCH_UNROLL
      for (int third = 0; third < 3; ++third) {
        const int column =
            tile.tile * flow_forward::kTileColumns + third * flow_forward::kTileChannels + tile.own_column;
        TWINBENCH_UNROLL
        for (int f = 0; f < flow_forward::kOwnFlows; ++f) {
          const std::int64_t row = tile.first + tile.own_flow + f;
          if (row < tile.total && column < own.tile.columns)
            store(own, row, column, {{sums[third][0][f], sums[third][1][f]}});
        }
      }
    });
  }

 private:
  // A state that no step has given has no gradient that anybody asks for.
  static TWINBENCH_DEVICE void store(const ProductArguments& a, std::int64_t row, int column,
                                     const kernels::Floats<2>& sums) {
    const std::int64_t columns = a.tile.columns;
    if (a.adjoints == nullptr) return kernels::store(a.tile.out + row * columns + column, sums);
    const std::int64_t from = a.source[row], at = a.slot[row] * columns + column;
    if (from < 0) return;
    const std::int64_t there = from * columns + column;
    const kernels::Floats<2> before = a.stored_before != nullptr ? kernels::load_bf16<2>(a.stored_before + there)
                                                                 : kernels::load<2>(a.before + there),
                             direct = kernels::load<2>(a.adjoints + at);
    kernels::Floats<2> gradient;
    TWINBENCH_UNROLL
    for (int i = 0; i < 2; ++i)
      gradient.of[i] = kernels::guard_gradient(before.of[i], energy_carrier::kGuardLimit, direct.of[i] + sums.of[i]);
    kernels::store(a.adjoints + at, gradient);
  }
};

struct Products : ProductsAs<false> {};

struct ProductsTf32 : ProductsAs<true> {};

}  // namespace twinbench::energy_flow::flow_backward
