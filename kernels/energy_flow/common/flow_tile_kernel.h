// The whole forward's products in fp32, or by tensor cores in TF32: 64 live flows by 96 columns a block, in a recurrent
// layer with the gates behind them. Sums are taken in the order of the inner length, input before state: a flow's are
// the same bits in any row. In the namespace of the component that had them first; the whole backward pass takes them
// too.
#pragma once

#include "kernels/common/bf16_vectors.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/common/flow_arguments.h"
#include "kernels/energy_flow/common/gru.h"
#include "kernels/energy_flow/common/tf32_tile.h"

namespace twinbench::energy_flow::flow_forward {

namespace simt = kernels::simt;

constexpr int kOwnFlows = 8;  // a thread's, by two columns of each third of the tile: 48 products from 22 values

// The state of rows as a product reads it: floats, which the heads may take rounded to bf16; or bf16, rounded when it
// was stored.
enum class StateAs { kFloat, kRounded, kStored };

template <int kWidth, StateAs kState>
TWINBENCH_DEVICE kernels::Floats<kWidth> load_state(const TileArguments& a, std::int64_t at) {
  if constexpr (kState == StateAs::kStored)
    return kernels::load_bf16<kWidth>(a.stored + at);
  else
    return kernels::load<kWidth>(a.state + at);
}

// What a thread does in its block. All threads call step() for every slice in turn. kTf32: products by tensor cores.
template <class Block, StateAs kState = StateAs::kFloat, bool kTf32 = false>
class FlowTile {
 public:
  using Sums = float[2][kOwnFlows];

  TWINBENCH_DEVICE FlowTile(Block& own_block, const TileArguments& arguments, std::int32_t rows, std::int64_t first_row,
                            int of_columns)
      : first(first_row),
        total(rows),
        tile(of_columns),
        own_flow(simt::thread_rank(own_block) % 32 / 4 * kOwnFlows),
        own_column(simt::thread_rank(own_block) / 32 * 8 + simt::thread_rank(own_block) % 4 * 2),
        input_slices(arguments.input_stride / kSliceDepth),
        slices(input_slices + arguments.stride / kSliceDepth),
        block_(own_block),
        a_(arguments),
        thread_(simt::thread_rank(own_block)) {
    TWINBENCH_UNROLL
    for (int j = 0; j < kRows; ++j) {
      const std::int64_t row = row_of(j);
      state_row_[j] = row >= total ? kNoSource : a_.source != nullptr ? a_.source[row] : row;
    }
    load(0);
  }

  const std::int64_t first;              // row of the tile
  const std::int32_t total;              // rows that there are
  const int tile, own_flow, own_column;  // tile of columns; the thread's places in the tile
  const int input_slices, slices;

  // Adds a slice's products while the next one is on its way. One barrier: of the two places in shared memory the one
  // that is filled was read before the barrier before.
  TWINBENCH_DEVICE void step(int slice, Sums& one, Sums& two, Sums& three) {
    auto flows = simt::dynamic_shared<float>(block_, slice % 2 * kSliceBytes);
    auto fours = simt::dynamic_shared<kernels::Floats<4>>(block_, slice % 2 * kSliceBytes);
    auto weights = simt::dynamic_shared<kernels::Floats<4>>(block_, slice % 2 * kSliceBytes + kFlowBytes);
    auto pairs = simt::dynamic_shared<kernels::Floats<2>>(block_, slice % 2 * kSliceBytes + kFlowBytes);
    const bool guards = slice >= input_slices;
    TWINBENCH_UNROLL
    for (int j = 0; j < kRows; ++j) {
      const int flow = thread_ / kQuarters + j * (kTileThreads / kQuarters);
      TWINBENCH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float value = values_[j].of[i];
        flows[place_in_slice(thread_ % kQuarters * 4 + i, flow)] =
            guards ? kernels::operand(kernels::guard(value, energy_carrier::kGuardLimit), kState == StateAs::kRounded)
                   : value;
      }
    }
    TWINBENCH_UNROLL
    for (int j = 0; j < kWeights; ++j) weights[thread_ + j * kTileThreads] = coefficients_[j];
    block_.barrier();
    if (slice + 1 < slices) load(slice + 1);
    if constexpr (kTf32) {
      auto columns = simt::dynamic_shared<float>(block_, slice % 2 * kSliceBytes + kFlowBytes);
      TWINBENCH_ROLLED
      for (int part = 0; part < kSliceDepth / kTf32Depth; ++part) add_part(part, fours, columns, one, two, three);
    } else {
      TWINBENCH_ROLLED
      for (int quarter = 0; quarter < kQuarters; ++quarter) {
        TWINBENCH_UNROLL
        for (int i = 0; i < 4; ++i) add(quarter * 4 + i, fours, pairs, one, two, three);
      }
    }
  }

 private:
  static constexpr int kQuarters = kSliceDepth / 4;  // neighbouring threads that share a row's part of a slice
  static constexpr int kRows = kTileFlows * kQuarters / kTileThreads;
  static constexpr int kWeights = kSliceDepth * kTileColumns / 4 / kTileThreads;
  static_assert(kTileFlows * kQuarters % kTileThreads == 0 && kSliceDepth * kTileColumns / 4 % kTileThreads == 0);

  template <class Flows, class Weights>
  TWINBENCH_DEVICE void add(int k, Flows flows, Weights weights, Sums& one, Sums& two, Sums& three) const {
    const int place = place_in_slice(k, own_flow) / 4;
    const kernels::Floats<4> low = flows[place], high = flows[place + 1];
    TWINBENCH_UNROLL
    for (int third = 0; third < 3; ++third) {
      const kernels::Floats<2> weight = weights[(k * kTileColumns + third * kTileChannels + own_column) / 2];
      Sums& sums = third == 0 ? one : third == 1 ? two : three;
      TWINBENCH_UNROLL
      for (int c = 0; c < 2; ++c) {
        TWINBENCH_UNROLL
        for (int f = 0; f < kOwnFlows; ++f)
          sums[c][f] = kernels::multiply_add(weight.of[c], f < 4 ? low.of[f % 4] : high.of[f % 4], sums[c][f]);
      }
    }
  }

  // A thread's flows are eight neighbours, its columns those that a tensor core's tile has for its lane.
  template <class Flows, class Columns>
  TWINBENCH_DEVICE void add_part(int part, Flows flows, Columns columns, Sums& one, Sums& two, Sums& three) const {
    const int lane = thread_ % 32, pair = lane % 4, at = part * kTf32Depth + pair;
    const auto eight = [&](int depth) {
      const int place = place_in_slice(depth, own_flow) / 4;
      return Tf32Eight{flows[place], flows[place + 1]};
    };
    const Tf32Eight low = eight(at), high = eight(at + 4);
    TWINBENCH_UNROLL
    for (int third = 0; third < 3; ++third) {
      const int column = third * kTileChannels + thread_ / 32 * 8 + lane / 4;
      multiply_tf32_tiles(block_, low, high, columns[at * kTileColumns + column],
                          columns[(at + 4) * kTileColumns + column],
                          third == 0   ? one
                          : third == 1 ? two
                                       : three);
    }
  }

  TWINBENCH_DEVICE void load(int slice) {
    const bool input = slice < input_slices;
    const int depth = (input ? slice : slice - input_slices) * kSliceDepth + thread_ % kQuarters * 4;
    TWINBENCH_UNROLL
    for (int j = 0; j < kRows; ++j) {
      const std::int64_t row = row_of(j);
      values_[j] = {};
      if (input && row < total)
        values_[j] = kernels::load<4>(a_.input + row * a_.input_stride + depth);
      else if (!input && state_row_[j] >= 0)
        values_[j] = load_state<4, kState>(a_, state_row_[j] * a_.stride + depth);
    }
    const std::int64_t inner = a_.input_stride + a_.stride;
    const float* const from = a_.weights + (tile * inner + std::int64_t{slice} * kSliceDepth) * kTileColumns;
    TWINBENCH_UNROLL
    for (int j = 0; j < kWeights; ++j) coefficients_[j] = kernels::load<4>(from + 4 * (thread_ + j * kTileThreads));
  }

  TWINBENCH_DEVICE std::int64_t row_of(int j) const {
    return first + thread_ / kQuarters + j * (kTileThreads / kQuarters);
  }

  Block& block_;
  const TileArguments& a_;
  const int thread_;
  std::int64_t state_row_[kRows];
  kernels::Floats<4> values_[kRows], coefficients_[kWeights];  // of the next slice, on their way
};

// body(tile) for the tile of flows and columns that is the block's: tiles of columns are neighbours. None where there
// are no flows for it.
template <StateAs kState = StateAs::kFloat, bool kTf32 = false, class Block, class Body>
TWINBENCH_DEVICE void over_tile(Block& block, const TileArguments& a, int tiles, Body body) {
  const std::int32_t total = *a.total;
  const std::int64_t first = std::int64_t{block.index().x / static_cast<unsigned>(tiles)} * kTileFlows;
  if (first >= total) return;  // the whole block
  FlowTile<Block, kState, kTf32> tile(block, a, total, first,
                                      static_cast<int>(block.index().x % static_cast<unsigned>(tiles)));
  body(tile);
}

TWINBENCH_HOST_DEVICE int channel_tiles(const TileArguments& a) {
  return (a.stride + kTileChannels - 1) / kTileChannels;
}
TWINBENCH_HOST_DEVICE int column_tiles(const TileArguments& a) { return (a.columns + kTileColumns - 1) / kTileColumns; }

// A row's gates in two neighbouring channels, and the candidate's sum of the state.
struct RowGates {
  energy_carrier::Channel<float> of[2];
  float from_state[2];
};

// Grid: channel_tiles() for every kTileFlows rows that there can be. The state is left as the layer above takes it; who
// reads it as a state guards it. kStores: it is left in bf16 too (hidden_dtype), which the next step reads; what the
// layer above and the heads take has not been rounded.
template <bool kStores, bool kTf32>
struct RecurrentProducts {
  static constexpr int kMaxThreads = kTileThreads;
  static constexpr int kMinBlocksPerSm = 3;
  static std::int64_t documented_shared_bytes() { return kTileBytes; }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TileArguments& a) const {
    run(block, a, [&](std::int64_t row, int channel, const RowGates& gates) { store_state(a, row, channel, gates); });
  }

 protected:
  static constexpr StateAs kState = kStores ? StateAs::kStored : StateAs::kFloat;

  static TWINBENCH_DEVICE void store_state(const TileArguments& a, std::int64_t row, int channel,
                                           const RowGates& gates) {
    const kernels::Floats<2> next{{gates.of[0].next, gates.of[1].next}};
    kernels::store(a.out + row * a.stride + channel, next);
    if constexpr (kStores) kernels::store_bf16(a.out_stored + row * a.stride + channel, next);
  }

  // store(row, channel, gates of that channel and the next one).
  template <class Block, class Store>
  static TWINBENCH_DEVICE void run(Block& block, const TileArguments& a, Store store) {
    using Tile = FlowTile<Block, kState, kTf32>;
    over_tile<kState, kTf32>(block, a, channel_tiles(a), [&](Tile& tile) {
      typename Tile::Sums reset = {}, update = {}, of_input = {}, of_state = {};
      TWINBENCH_ROLLED
      for (int slice = 0; slice < tile.input_slices; ++slice) tile.step(slice, reset, update, of_input);
      TWINBENCH_ROLLED
      for (int slice = tile.input_slices; slice < tile.slices; ++slice) tile.step(slice, reset, update, of_state);
      const int channel = tile.tile * kTileChannels + tile.own_column;
      if (channel >= a.stride) return;
      const float* const biases = a.biases + std::int64_t{tile.tile} * 4 * kTileChannels + tile.own_column;
      kernels::Floats<2> bias[4], hidden[kOwnFlows];
      TWINBENCH_UNROLL
      for (int sum = 0; sum < 4; ++sum) bias[sum] = kernels::load<2>(biases + sum * kTileChannels);
      TWINBENCH_UNROLL
      for (int f = 0; f < kOwnFlows; ++f) {
        const std::int64_t row = tile.first + tile.own_flow + f;
        const std::int64_t from = row < tile.total ? a.source[row] : kNoSource;
        hidden[f] = {};
        if (from >= 0) hidden[f] = load_state<2, kState>(a, from * a.stride + channel);
      }
      TWINBENCH_UNROLL
      for (int f = 0; f < kOwnFlows; ++f) {
        const std::int64_t row = tile.first + tile.own_flow + f;
        if (row >= tile.total) continue;
        RowGates gates;
        TWINBENCH_UNROLL
        for (int c = 0; c < 2; ++c) {
          gates.from_state[c] = of_state[c][f] + bias[3].of[c];
          gates.of[c] = energy_carrier::gru_channel(reset[c][f] + bias[0].of[c], update[c][f] + bias[1].of[c],
                                                    of_input[c][f] + bias[2].of[c], gates.from_state[c],
                                                    kernels::guard(hidden[f].of[c], energy_carrier::kGuardLimit));
        }
        store(row, channel, gates);
      }
    });
  }
};

}  // namespace twinbench::energy_flow::flow_forward
