// Attention backward in two kernels: queries by tiles past all keys, then keys by tiles past all queries. Probabilities
// are made again from what the forward pass kept of each query; nothing is added by atomics.
#pragma once

#include "kernels/energy_flow/common/attention_kernel.h"

namespace twinbench::energy_flow {

// Dynamic shared memory of both: four tiles of the width, and one of scores.
TWINBENCH_HOST_DEVICE std::int64_t attention_back_shared_bytes(int width) {
  return (4 * tile_floats(width) + tile_floats(kTileRows)) * static_cast<std::int64_t>(sizeof(float));
}

// What is known of four queries.
struct FourQueries {
  float below[4], inverse[4], share[4];
};
TWINBENCH_DEVICE FourQueries known_of(const Attention<float>& a, const TileHead& h, int first) {
  FourQueries known = {};
  TWINBENCH_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (first + i >= h.queries) continue;
    const std::int64_t at = h.statistics + first + i;
    known.below[i] = subtrahend(a.largest[at]);
    known.inverse[i] = 1.0f / a.denominator[at];
    known.share[i] = a.share[at];
  }
  return known;
}

// Gradients of the queries. Grid: tiles of queries, heads, samples. Leaves each query's share for the next kernel.
struct AttentionQueriesBack {
  static constexpr int kMaxThreads = kAttentionThreads;
  static std::int64_t documented_shared_bytes() { return attention_back_shared_bytes(32); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Attention<float>& a) const {
    const TileHead h = head_of(block, a);
    const int first = static_cast<int>(block.index().x) * kTileRows;
    if (first >= h.queries) return;
    const int thread = simt::thread_rank(block), y = thread / 16, x = thread % 16;
    const int tile = static_cast<int>(tile_floats(a.width) * sizeof(float));
    const auto floats = [&](int i) { return simt::dynamic_shared<float>(block, i * tile); };
    const auto fours = [&](int i) { return simt::dynamic_shared<kernels::Floats<4>>(block, i * tile); };
    load_tile(block, rows_of(a.query, h), a.query.of_row, first, h.queries, a.width, a.round, floats(0));
    load_tile(block, rows_of(a.grad_out, h), a.grad_out.of_row, first, h.queries, a.width, a.round, floats(1));
    find_shares(block, a, h, first, y, x);
    const FourQueries known = known_of(a, h, first + 4 * y);
    const auto slope = floats(4);
    Columns sums = {};
    for (int begin = 0; begin < h.keys; begin += kTileRows) {
      const std::uint64_t taken = taken_keys(block, a, h, begin);
      if (taken == 0) continue;
      load_tile(block, rows_of(a.key, h), a.key.of_row, begin, h.keys, a.width, a.round, floats(2));
      load_tile(block, rows_of(a.value, h), a.value.of_row, begin, h.keys, a.width, a.round, floats(3));
      block.barrier();
      const FourByFour scores = multiply_tiles(fours(0), fours(2), a.width, y, x);
      const FourByFour gradients = multiply_tiles(fours(1), fours(3), a.width, y, x);
      TWINBENCH_UNROLL
      for (int i = 0; i < 4; ++i) {
        TWINBENCH_UNROLL
        for (int j = 0; j < 4; ++j) {
          const bool in = (taken >> (4 * x + j) & 1u) != 0;
          const float probability =
              in ? power_below(a.scale * static_cast<float>(kLog2E) * scores.of[i][j] - known.below[i]) *
                       known.inverse[i]
                 : 0.0f;
          slope[(4 * x + j) * kTilePitch + 4 * y + i] =
              a.scale * score_gradient(probability, gradients.of[i][j], known.share[i]);
        }
      }
      block.barrier();
      add_products(sums, fours(4), floats(2), a.width, y, x);
      block.barrier();
    }
    const float one[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    store_columns(sums, one, rows_of(a.grad_query, h), a.grad_query.of_row, first, h.queries, a.width, y, x);
  }

 private:
  template <class Block>
  static TWINBENCH_DEVICE void find_shares(Block& block, const Attention<float>& a, const TileHead& h, int first, int y,
                                           int x) {
    for (int i = 0; i < 4; ++i) {
      const int row = first + 4 * y + i;
      float sum = 0.0f;
      for (int c = x; row < h.queries && c < a.width; c += 16)
        sum = kernels::multiply_add(attention_operand(rows_of(a.grad_out, h)[row * a.grad_out.of_row + c], a.round),
                                    rows_of(a.out, h)[row * a.out.of_row + c], sum);
      sum = half_warp_reduce(block, sum, simt::Sum{});
      if (x == 0 && row < h.queries) a.share[h.statistics + row] = sum;
    }
    block.barrier();  // read by the other threads of the row
  }
};

// Gradients of keys and values. Grid: tiles of keys, heads, samples.
struct AttentionKeysBack {
  static constexpr int kMaxThreads = kAttentionThreads;
  static std::int64_t documented_shared_bytes() { return attention_back_shared_bytes(32); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Attention<float>& a) const {
    const TileHead h = head_of(block, a);
    const int first = static_cast<int>(block.index().x) * kTileRows;
    if (first >= h.keys) return;
    const int thread = simt::thread_rank(block), y = thread / 16, x = thread % 16;
    const int tile = static_cast<int>(tile_floats(a.width) * sizeof(float));
    const auto floats = [&](int i) { return simt::dynamic_shared<float>(block, i * tile); };
    const auto fours = [&](int i) { return simt::dynamic_shared<kernels::Floats<4>>(block, i * tile); };
    const std::uint64_t taken = taken_keys(block, a, h, first);
    load_tile(block, rows_of(a.key, h), a.key.of_row, first, h.keys, a.width, a.round, floats(0));
    load_tile(block, rows_of(a.value, h), a.value.of_row, first, h.keys, a.width, a.round, floats(1));
    Columns keys = {}, values = {};
    for (int begin = 0; taken != 0 && begin < h.queries; begin += kTileRows) {
      load_tile(block, rows_of(a.query, h), a.query.of_row, begin, h.queries, a.width, a.round, floats(2));
      load_tile(block, rows_of(a.grad_out, h), a.grad_out.of_row, begin, h.queries, a.width, a.round, floats(3));
      const FourQueries known = known_of(a, h, begin + 4 * x);
      block.barrier();
      FourByFour weights = multiply_tiles(fours(0), fours(2), a.width, y, x);
      FourByFour slopes = multiply_tiles(fours(1), fours(3), a.width, y, x);
      TWINBENCH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const bool in = (taken >> (4 * y + i) & 1u) != 0;
        TWINBENCH_UNROLL
        for (int j = 0; j < 4; ++j) {
          weights.of[i][j] =
              in ? power_below(a.scale * static_cast<float>(kLog2E) * weights.of[i][j] - known.below[j]) *
                       known.inverse[j]
                 : 0.0f;
          slopes.of[i][j] = a.scale * score_gradient(weights.of[i][j], slopes.of[i][j], known.share[j]);
        }
      }
      put(weights, floats(4), y, x);
      block.barrier();
      add_products(values, fours(4), floats(3), a.width, y, x);
      block.barrier();
      put(slopes, floats(4), y, x);
      block.barrier();
      add_products(keys, fours(4), floats(2), a.width, y, x);
      block.barrier();
    }
    const float one[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    store_columns(keys, one, rows_of(a.grad_key, h), a.grad_key.of_row, first, h.keys, a.width, y, x);
    store_columns(values, one, rows_of(a.grad_value, h), a.grad_value.of_row, first, h.keys, a.width, y, x);
  }

 private:
  // Queries outside: [query][key].
  template <class Shared>
  static TWINBENCH_DEVICE void put(const FourByFour& values, Shared to, int y, int x) {
    TWINBENCH_UNROLL
    for (int i = 0; i < 4; ++i) {
      TWINBENCH_UNROLL
      for (int j = 0; j < 4; ++j) to[(4 * x + j) * kTilePitch + 4 * y + i] = values.of[i][j];
    }
  }
};

}  // namespace twinbench::energy_flow
