// A layer whose weights are streamed once for 16 rows: bias, GELU and pieces of the moments behind its product, the
// normalisation on the next one's load. For output collector (C05) and the whole forward's mapper (C04).
#pragma once

#include <type_traits>

#include "kernels/common/grid.h"
#include "kernels/common/layer_norm.h"
#include "kernels/common/short_math.h"
#include "kernels/common/simt_scan.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/common/layer_arguments.h"
#include "kernels/energy_flow/common/surface_cell.h"

namespace twinbench::energy_flow::output_collector {

namespace simt = kernels::simt;
using kernels::Floats;

// A place of the layer before, normalised, as the next product takes it.
TWINBENCH_HOST_DEVICE float hidden_operand(float x, float mean, float inverse, float gain, float shift, bool round) {
  return kernels::operand(kernels::scaled(kernels::normalized(x, mean, inverse), gain, shift), round);
}

constexpr int kLayerThreads = 256;
constexpr int kWarps = 8;
constexpr int kRows = 16;                             // of a block: a weight that is read serves all of them
constexpr int kWarpColumns = kLayerColumns / kWarps;  // of a warp, whose lanes share the inner length
constexpr int kDepth = 256;                           // of the inner length at a time: a thread's place of each row

constexpr int kStagedBytes = 4 * kRows * kDepth;  // of dynamic shared memory

// What becomes of a last layer's sum with its bias.
struct AsItIs {
  static TWINBENCH_DEVICE float result(const LayerArguments&, float value, std::int64_t) { return value; }
};
struct SurfaceEnergies {
  static TWINBENCH_DEVICE float result(const LayerArguments& a, float value, std::int64_t column) {
    return embedding_mapper::cell_energy(kernels::tanh(value), *a.scale, *a.offset, a.cell_offset[column]);
  }
};

// Grid: pieces of the columns along x, rows along y. The order in which one place is summed depends on nothing but the
// inner length. kWidth: weights of an access, 1 where rows do not start at multiples of four. kRounds: a first layer's
// x is no operand yet, and is rounded.
template <class Stored, int kWidth, class Last = AsItIs, bool kRounds = false>
struct LayerAs {
  static constexpr int kMaxThreads = kLayerThreads;
  static std::int64_t documented_shared_bytes() { return kStagedBytes; }
  static constexpr int kSteps = kDepth / (simt::kWarpSize * kWidth);
  using Weights = kernels::Vector<Stored, kWidth>;

  // What a thread has in flight: its places of all rows, and its warp's columns.
  struct Slice {
    float x[kRows];
    Weights weight[kWarpColumns][kSteps];
    float gain, shift;
  };

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const LayerArguments& a) const {
    auto staged = simt::dynamic_shared<float>(block);
    auto mean = simt::shared_array<float, kRows, 1>(block);
    auto inverse = simt::shared_array<float, kRows, 2>(block);
    const int thread = simt::thread_rank(block), lane = simt::lane(block);
    const std::int64_t first_row = std::int64_t{block.index().y} * kRows;
    const int rows = a.rows - first_row < kRows ? static_cast<int>(a.rows - first_row) : kRows;
    const std::int64_t column = std::int64_t{block.index().x} * kLayerColumns + simt::warp(block) * kWarpColumns;
    if (a.moments != nullptr) merge_moments(block, a, first_row, rows, mean, inverse);
    block.barrier();
    float sums[kWarpColumns][kRows] = {};
    Slice next = slice_at(a, first_row, rows, column, 0, thread, lane);
    for (std::int64_t k = 0; k < a.inner; k += kDepth) {
      const Slice now = next;
      TWINBENCH_UNROLL
      for (int row = 0; row < kRows; ++row) {
        float value = 0.0f;
        if (row < rows && k + thread < a.inner) {
          value = now.x[row];
          if (a.moments != nullptr)
            value = hidden_operand(value, mean[row], inverse[row], now.gain, now.shift, a.weight == nullptr);
          else if constexpr (kRounds)
            value = kernels::round_to_bf16(value);
        }
        staged[row * kDepth + thread] = value;
      }
      block.barrier();
      if (k + kDepth < a.inner) next = slice_at(a, first_row, rows, column, k + kDepth, thread, lane);
      add_slice(block, now, lane, rows, a.inner - k, sums);
      block.barrier();
    }
    finish(block, a, first_row, rows, sums);
  }

 private:
  TWINBENCH_DEVICE static const Stored* weights_of(const LayerArguments& a) {
    if constexpr (std::is_same_v<Stored, float>)
      return a.weight;
    else
      return a.weight_bf16;
  }
  TWINBENCH_DEVICE static float value_of(Stored weight) {
    if constexpr (std::is_same_v<Stored, float>)
      return weight;
    else
      return kernels::float_of_bf16_bits(weight);
  }

  // A warp a row at a time: the pieces' moments by its lanes.
  template <class Block, class Shared>
  TWINBENCH_DEVICE static void merge_moments(Block& block, const LayerArguments& a, std::int64_t first_row, int rows,
                                             Shared mean, Shared inverse) {
    const std::int64_t pieces = pieces_of(a.inner);
    const auto count_of = [&](std::int64_t piece) {
      const std::int64_t left = a.inner - piece * kLayerColumns;
      return static_cast<float>(left < kLayerColumns ? left : kLayerColumns);
    };
    const auto all = static_cast<float>(a.inner);
    for (int row = simt::warp(block); row < rows; row += kWarps) {
      const float* const means = a.moments + (first_row + row) * pieces;
      const float* const deviations = means + a.rows * pieces;
      float sum = 0.0f, squares = 0.0f;
      for (std::int64_t piece = simt::lane(block); piece < pieces; piece += simt::kWarpSize)
        sum += count_of(piece) * means[piece];
      const float middle = simt::warp_sum(block, sum) / all;
      for (std::int64_t piece = simt::lane(block); piece < pieces; piece += simt::kWarpSize) {
        const float away = means[piece] - middle;
        squares += kernels::multiply_add(count_of(piece) * away, away, deviations[piece]);
      }
      squares = simt::warp_sum(block, squares);
      if (simt::lane(block) == 0) {
        mean[row] = middle;
        inverse[row] = kernels::inverse_deviation(squares / all);
      }
    }
  }

  TWINBENCH_DEVICE static Slice slice_at(const LayerArguments& a, std::int64_t first_row, int rows, std::int64_t column,
                                         std::int64_t k, int thread, int lane) {
    Slice slice = {};
    TWINBENCH_UNROLL
    for (int c = 0; c < kWarpColumns; ++c) TWINBENCH_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const std::int64_t at = k + (step * simt::kWarpSize + lane) * kWidth;
      if (column + c < a.columns && at < a.inner)
        slice.weight[c][step] = load_weights(weights_of(a) + (column + c) * a.inner + at);
    }
    if (k + thread >= a.inner) return slice;
    TWINBENCH_UNROLL
    for (int row = 0; row < kRows; ++row)
      if (row < rows) slice.x[row] = a.x[(first_row + row) * a.inner + k + thread];
    if (a.moments != nullptr) {
      slice.gain = a.gain[k + thread];
      slice.shift = a.shift[k + thread];
    }
    return slice;
  }
  TWINBENCH_DEVICE static Weights load_weights(const Stored* from) { return kernels::load<kWidth>(from); }

  template <class Block>
  TWINBENCH_DEVICE static void add_slice(Block& block, const Slice& slice, int lane, int rows, std::int64_t left,
                                         float (&sums)[kWarpColumns][kRows]) {
    auto places = simt::dynamic_shared<Floats<kWidth>>(block);  // the staged slice, as this access reads it
    TWINBENCH_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const int at = step * simt::kWarpSize + lane;
      if (left <= step * simt::kWarpSize * kWidth) break;
      TWINBENCH_UNROLL
      for (int row = 0; row < kRows; ++row) {
        if (row >= rows) break;
        const Floats<kWidth> values = places[row * (kDepth / kWidth) + at];
        TWINBENCH_UNROLL
        for (int c = 0; c < kWarpColumns; ++c) TWINBENCH_UNROLL
        for (int i = 0; i < kWidth; ++i)
          sums[c][row] = kernels::multiply_add(values.of[i], value_of(slice.weight[c][step].of[i]), sums[c][row]);
      }
    }
  }

  template <class Block>
  TWINBENCH_DEVICE static void finish(Block& block, const LayerArguments& a, std::int64_t first_row, int rows,
                                      float (&sums)[kWarpColumns][kRows]) {
    auto results = simt::shared_array<float, kRows * kLayerColumns, 3>(block);
    const int thread = simt::thread_rank(block);
    TWINBENCH_UNROLL
    for (int c = 0; c < kWarpColumns; ++c) TWINBENCH_UNROLL
    for (int row = 0; row < kRows; ++row) {
      if (row >= rows) break;
      const float total = simt::warp_sum(block, sums[c][row]);
      if (simt::lane(block) == row) results[row * kLayerColumns + simt::warp(block) * kWarpColumns + c] = total;
    }
    block.barrier();
    // A thread a place; 16 neighbours have a row.
    const int row = thread / kLayerColumns;
    const std::int64_t column = std::int64_t{block.index().x} * kLayerColumns + thread % kLayerColumns;
    const bool valid = row < rows && column < a.columns;
    float value = 0.0f;
    if (valid) {
      const float product = results[thread];
      value = product + a.bias[column];
    }
    const bool last = a.out_moments == nullptr;
    if (!last) value = kernels::short_gelu(value);
    if (last && valid) value = Last::result(a, value, column);
    if (valid) a.out[(first_row + row) * a.columns + column] = value;
    if (last) return;
    const std::int64_t left = a.columns - std::int64_t{block.index().x} * kLayerColumns;
    const auto count = static_cast<float>(left < kLayerColumns ? left : kLayerColumns);
    const float mean = simt::group_sum<kLayerColumns>(block, valid ? value : 0.0f) / count;
    const float away = valid ? value - mean : 0.0f;
    const float squares = simt::group_sum<kLayerColumns>(block, away * away);
    if (!valid || thread % kLayerColumns != 0) return;
    const std::int64_t pieces = pieces_of(a.columns), at = (first_row + row) * pieces + block.index().x;
    a.out_moments[at] = mean;
    a.out_moments[a.rows * pieces + at] = squares;
  }
};
static_assert(kWarps * simt::kWarpSize == kLayerThreads && kDepth == kLayerThreads, "a thread a place of each row");
static_assert(kRows * kLayerColumns == kLayerThreads, "a thread a result");

}  // namespace twinbench::energy_flow::output_collector
