// Products of a decoder's step: weights are streamed once for 16 rows, the norm is done on load, and residuals, relu or
// the choice among logits behind the sums.
#pragma once

#include <type_traits>

#include "kernels/common/simt_scan.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/text_decoder/arguments.h"
#include "kernels/energy_flow/text_decoder/math.h"

namespace twinbench::energy_flow::text_decoder {

namespace simt = kernels::simt;

constexpr int kProductThreads = 256;
constexpr int kProductWarps = kProductThreads / simt::kWarpSize;
constexpr int kProductWarpColumns = kProductColumns / kProductWarps;
constexpr int kProductDepth = 256;  // of the inner length at a time: a thread's place of each row
constexpr int kProductStagedBytes = 4 * kProductRows * kProductDepth;

template <class Block>
TWINBENCH_DEVICE TopTwo from_lane(Block& block, const TopTwo& two, int lanes) {
  return {block.shuffle_xor(two.best, lanes), block.shuffle_xor(two.second, lanes), block.shuffle_xor(two.id, lanes)};
}

// Grid: pieces of the columns along x, rows along y, groups along z. The order in which one place is summed depends on
// the inner length alone. kWidth: weights of an access, 1 where rows do not start at multiples of four.
template <class Stored, int kWidth, bool kPicks>
struct ProductAs {
  static constexpr int kMaxThreads = kProductThreads;
  static std::int64_t documented_shared_bytes() { return kProductStagedBytes; }
  static constexpr bool kRounds = !std::is_same_v<Stored, float>;
  static constexpr int kSteps = kProductDepth / (simt::kWarpSize * kWidth);
  using Weights = kernels::Vector<Stored, kWidth>;

  // What a thread has in flight: its places of all rows, and its warp's columns.
  struct Slice {
    float x[kProductRows];
    Weights weight[kProductWarpColumns][kSteps];
    float gain;
  };
  struct Place {
    std::int64_t group, first_row, column, step;
    int rows, thread, lane;
    std::uint32_t live;  // a bit a row
  };

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ProductArguments& a) const {
    auto staged = simt::dynamic_shared<float>(block);
    auto inverse = simt::shared_array<float, kProductRows, 1>(block);
    Place at{.group = block.index().z,
             .first_row = std::int64_t{block.index().y} * kProductRows,
             .column = std::int64_t{block.index().x} * kProductColumns + simt::warp(block) * kProductWarpColumns,
             .step = a.step != nullptr ? *a.step : 0,
             .rows = 0,
             .thread = simt::thread_rank(block),
             .lane = simt::lane(block),
             .live = 0};
    at.rows = a.rows - at.first_row < kProductRows ? static_cast<int>(a.rows - at.first_row) : kProductRows;
    at.live = block.ballot(at.lane < at.rows && (a.done == nullptr || a.done[at.first_row + at.lane] == 0));
    if (kPicks && block.index().x == 0 && block.index().y == 0 && at.thread == 0) *a.step_to_pick = *a.step;
    if (at.live == 0) return;  // of all threads, before any barrier
    if (a.gain != nullptr) norms(block, a, at, inverse);
    block.barrier();
    float sums[kProductWarpColumns][kProductRows] = {};
    Slice next = slice_at(a, at, 0);
    for (std::int64_t k = 0; k < a.inner; k += kProductDepth) {
      const Slice now = next;
      TWINBENCH_UNROLL
      for (int row = 0; row < kProductRows; ++row) {
        float value = now.x[row];
        if (a.gain != nullptr && row < at.rows) value = value * inverse[row] * now.gain;
        staged[row * kProductDepth + at.thread] = kernels::operand(value, kRounds);
      }
      block.barrier();
      if (k + kProductDepth < a.inner) next = slice_at(a, at, k + kProductDepth);
      add_slice(block, now, at, a.inner - k, sums);
      block.barrier();
    }
    finish(block, a, at, sums);
  }

 private:
  TWINBENCH_DEVICE static bool is_live(const Place& at, int row) { return (at.live >> row & 1u) != 0; }
  TWINBENCH_DEVICE static const Stored* weights_of(const ProductArguments& a) {
    if constexpr (kRounds)
      return a.weight_bf16;
    else
      return a.weight;
  }
  TWINBENCH_DEVICE static float value_of(Stored weight) {
    if constexpr (kRounds)
      return kernels::float_of_bf16_bits(weight);
    else
      return weight;
  }
  TWINBENCH_DEVICE static const float* row_of(const ProductArguments& a, const Place& at, int row) {
    return a.x + at.group * a.x_group + (at.first_row + row) * a.inner;
  }

  // A warp a row at a time.
  template <class Block, class Shared>
  TWINBENCH_DEVICE static void norms(Block& block, const ProductArguments& a, const Place& at, Shared inverse) {
    for (int row = simt::warp(block); row < at.rows; row += kProductWarps) {
      const float* const x = row_of(a, at, row);
      float squares = 0.0f;
      for (std::int64_t i = at.lane; i < a.inner; i += simt::kWarpSize)
        squares = kernels::multiply_add(x[i], x[i], squares);
      squares = simt::warp_sum(block, squares);
      if (at.lane == 0) inverse[row] = inverse_rms(squares, a.inner);
    }
  }

  TWINBENCH_DEVICE static Slice slice_at(const ProductArguments& a, const Place& at, std::int64_t k) {
    Slice slice = {};
    const Stored* const weights = weights_of(a) + at.group * a.columns * a.inner;
    TWINBENCH_UNROLL
    for (int c = 0; c < kProductWarpColumns; ++c) TWINBENCH_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const std::int64_t i = k + (step * simt::kWarpSize + at.lane) * kWidth;
      if (at.column + c < a.columns && i < a.inner)
        slice.weight[c][step] = kernels::load<kWidth>(weights + (at.column + c) * a.inner + i);
    }
    if (k + at.thread >= a.inner) return slice;
    TWINBENCH_UNROLL
    for (int row = 0; row < kProductRows; ++row)
      if (is_live(at, row)) slice.x[row] = row_of(a, at, row)[k + at.thread];
    if (a.gain != nullptr) slice.gain = a.gain[k + at.thread];
    return slice;
  }

  template <class Block>
  TWINBENCH_DEVICE static void add_slice(Block& block, const Slice& slice, const Place& at, std::int64_t left,
                                         float (&sums)[kProductWarpColumns][kProductRows]) {
    auto places = simt::dynamic_shared<kernels::Floats<kWidth>>(block);  // the staged slice, as this access reads it
    TWINBENCH_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      if (left <= step * simt::kWarpSize * kWidth) break;
      TWINBENCH_UNROLL
      for (int row = 0; row < kProductRows; ++row) {
        if (!is_live(at, row)) continue;
        const kernels::Floats<kWidth> values =
            places[row * (kProductDepth / kWidth) + step * simt::kWarpSize + at.lane];
        TWINBENCH_UNROLL
        for (int c = 0; c < kProductWarpColumns; ++c) TWINBENCH_UNROLL
        for (int i = 0; i < kWidth; ++i)
          sums[c][row] = kernels::multiply_add(values.of[i], value_of(slice.weight[c][step].of[i]), sums[c][row]);
      }
    }
  }

  template <class Block>
  TWINBENCH_DEVICE static void finish(Block& block, const ProductArguments& a, const Place& at,
                                      float (&sums)[kProductWarpColumns][kProductRows]) {
    auto results = simt::shared_array<float, kProductRows * kProductColumns, 3>(block);
    TWINBENCH_UNROLL
    for (int c = 0; c < kProductWarpColumns; ++c) TWINBENCH_UNROLL
    for (int row = 0; row < kProductRows; ++row) {
      if (!is_live(at, row)) continue;
      const float total = simt::warp_sum(block, sums[c][row]);
      if (at.lane == row) results[row * kProductColumns + simt::warp(block) * kProductWarpColumns + c] = total;
    }
    block.barrier();
    // A thread a place; 16 neighbours have a row.
    const int row = at.thread / kProductColumns;
    const std::int64_t column = std::int64_t{block.index().x} * kProductColumns + at.thread % kProductColumns;
    const bool valid = is_live(at, row) && column < a.columns;
    float value = 0.0f;
    if (valid) value = results[at.thread];
    if constexpr (kPicks)
      pick(block, a, at.first_row + row, column, value, valid);
    else if (valid)
      store(a, at, at.first_row + row, column, value);
  }

  TWINBENCH_DEVICE static void store(const ProductArguments& a, const Place& at, std::int64_t row, std::int64_t column,
                                     float value) {
    const std::int64_t place = row * a.columns + column;
    float* const out = a.out + at.group * a.rows * a.columns + at.step * a.out_step + place;
    if (a.accumulate) value += *out;
    if (a.add != nullptr) value += a.add[place];
    *out = a.relu && value < 0.0f ? 0.0f : value;
  }

  template <class Block>
  TWINBENCH_DEVICE static void pick(Block& block, const ProductArguments& a, std::int64_t row, std::int64_t column,
                                    float value, bool valid) {
    TopTwo two;
    if (valid) {
      two.best = value * a.scale;
      two.id = static_cast<std::int32_t>(column);
    }
    TWINBENCH_UNROLL
    for (int lanes = kProductColumns / 2; lanes > 0; lanes /= 2) two = merged(two, from_lane(block, two, lanes));
    if (!valid || column % kProductColumns != 0) return;
    const std::int64_t place = row * product_pieces(a.columns) + block.index().x;
    a.best[place] = two.best;
    a.second[place] = two.second;
    a.id[place] = two.id;
  }
};
static_assert(kProductRows * kProductColumns == kProductThreads && kProductDepth == kProductThreads,
              "a thread a result, and a place of each row");

struct Product : ProductAs<float, 4, false> {};
struct ProductAnyWidth : ProductAs<float, 1, false> {
  static constexpr int kMinBlocksPerSm = 1;  // else sm_120's code aims at 128 registers and spills one
};
struct ProductBfloat : ProductAs<std::uint16_t, 4, false> {};
struct ProductBfloatAnyWidth : ProductAs<std::uint16_t, 1, false> {};
struct Logits : ProductAs<float, 4, true> {};
struct LogitsAnyWidth : ProductAs<float, 1, true> {};
struct LogitsBfloat : ProductAs<std::uint16_t, 4, true> {};
struct LogitsBfloatAnyWidth : ProductAs<std::uint16_t, 1, true> {};

}  // namespace twinbench::energy_flow::text_decoder
