// Attention forward: a block takes 64 queries of one head, and all keys, 64 at a time, past them; one kernel.
//
// Every tile lies in shared memory with its columns outside, [width][kTilePitch], so that a thread takes four
// neighbouring rows of it in one access; 16 x 16 threads hold 4 x 4 scores each.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/common/attention.h"

namespace twinbench::energy_flow {

namespace simt = kernels::simt;

constexpr int kTileRows = 64;              // queries of a block, keys at a time
constexpr int kTilePitch = kTileRows + 4;  // floats between columns: 16-byte accesses, few bank conflicts
// 16 rows of 16: thread (y, x) has rows 4y ... of one side and 4x ... of the other.
constexpr int kAttentionThreads = 256;
constexpr int kWidestHead = 64;                 // what shared memory holds in both passes
constexpr int kMostColumns = kWidestHead / 16;  // of a result that a thread sums, each 16 apart

TWINBENCH_HOST_DEVICE std::int64_t tile_floats(int width) { return std::int64_t{kTilePitch} * width; }
// Dynamic shared memory: queries, keys and values, and the exponentials of a tile.
TWINBENCH_HOST_DEVICE std::int64_t attention_shared_bytes(int width) {
  return (3 * tile_floats(width) + tile_floats(kTileRows)) * static_cast<std::int64_t>(sizeof(float));
}

// Where the rows of a block's head begin, and how many there are.
struct TileHead {
  int sample, head, queries, keys;
  std::int64_t first, statistics;
};
template <class Block>
TWINBENCH_DEVICE TileHead head_of(const Block& block, const Attention<float>& a) {
  const int sample = static_cast<int>(block.index().z), head = static_cast<int>(block.index().y);
  return {sample,
          head,
          a.length ? a.length[sample] : a.queries,
          a.length ? a.length[sample] : a.keys,
          a.first_row ? a.first_row[sample] : 0,
          (static_cast<std::int64_t>(sample) * a.heads + head) * a.queries};
}
template <class T>
TWINBENCH_DEVICE T* rows_of(const HeadRows<T>& rows, const TileHead& h) {
  return rows.data + h.sample * rows.of_sample + h.head * rows.of_head + h.first * rows.of_row;
}

// Rows [first, first + kTileRows) of a head as operands; zeros beyond `rows`.
template <class Block, class Shared>
TWINBENCH_DEVICE void load_tile(Block& block, const float* from, std::int64_t of_row, int first, int rows, int width,
                                bool round, Shared to) {
  for (int i = simt::thread_rank(block); i < kTileRows * width; i += kAttentionThreads) {
    const int row = i / width, column = i % width;
    const float value = first + row < rows ? from[(first + row) * of_row + column] : 0.0f;
    to[column * kTilePitch + row] = attention_operand(value, round);
  }
}

// Which of keys [first, first + kTileRows) take part; the same in every thread of the block.
template <class Block>
TWINBENCH_DEVICE std::uint64_t taken_keys(Block& block, const Attention<float>& a, const TileHead& h, int first) {
  std::uint64_t taken = 0;
  TWINBENCH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int key = first + half * simt::kWarpSize + simt::lane(block);
    const bool in = key < h.keys && !(a.padding && a.padding[static_cast<std::int64_t>(h.sample) * a.keys + key]);
    taken |= static_cast<std::uint64_t>(block.ballot(in)) << (half * simt::kWarpSize);
  }
  return taken;
}

// Products of four rows of `left` with four rows of `right`, over the width: rows 4y ... and 4x ... of the thread.
struct FourByFour {
  float of[4][4];
};
template <class Shared>
TWINBENCH_DEVICE FourByFour multiply_tiles(Shared left, Shared right, int width, int y, int x) {
  FourByFour sum = {};
  for (int c = 0; c < width; ++c) {
    const kernels::Floats<4> a = left[c * (kTilePitch / 4) + y], b = right[c * (kTilePitch / 4) + x];
    TWINBENCH_UNROLL
    for (int i = 0; i < 4; ++i) {
      TWINBENCH_UNROLL
      for (int j = 0; j < 4; ++j) sum.of[i][j] = kernels::multiply_add(a.of[i], b.of[j], sum.of[i][j]);
    }
  }
  return sum;
}

// Sums of rows 4y ... with columns x, x + 16, ...: what a thread has of a result.
struct Columns {
  float of[4][kMostColumns];
};
// sums[i][c] += sum over k of factor[k][4y + i] * right[x + 16 c][k].
template <class Factors, class Shared>
TWINBENCH_DEVICE void add_products(Columns& sums, Factors factor, Shared right, int width, int y, int x) {
  for (int k = 0; k < kTileRows; ++k) {
    const kernels::Floats<4> a = factor[k * (kTilePitch / 4) + y];
    TWINBENCH_UNROLL
    for (int c = 0; c < kMostColumns; ++c) {
      if (x + 16 * c >= width) continue;
      const float b = right[(x + 16 * c) * kTilePitch + k];
      TWINBENCH_UNROLL
      for (int i = 0; i < 4; ++i) sums.of[i][c] = kernels::multiply_add(a.of[i], b, sums.of[i][c]);
    }
  }
}
TWINBENCH_DEVICE void store_columns(const Columns& sums, const float (&factor)[4], float* to, std::int64_t of_row,
                                    int first, int rows, int width, int y, int x) {
  TWINBENCH_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int row = first + 4 * y + i;
    TWINBENCH_UNROLL
    for (int c = 0; c < kMostColumns; ++c)
      if (row < rows && x + 16 * c < width) to[row * of_row + x + 16 * c] = sums.of[i][c] * factor[i];
  }
}

// Of the 16 threads that share rows: half a warp.
template <class Block, class Combine>
TWINBENCH_DEVICE float half_warp_reduce(Block& block, float value, Combine combine) {
  TWINBENCH_UNROLL
  for (int lanes = 8; lanes > 0; lanes /= 2) value = combine(value, block.shuffle_xor(value, lanes));
  return value;
}

// Grid: tiles of queries, heads, samples. Dynamic shared memory: attention_shared_bytes.
struct AttentionForward {
  static constexpr int kMaxThreads = kAttentionThreads;
  static std::int64_t documented_shared_bytes() { return attention_shared_bytes(32); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Attention<float>& a) const {
    const TileHead h = head_of(block, a);
    const int first = static_cast<int>(block.index().x) * kTileRows;
    if (first >= h.queries) return;  // the whole block
    const int thread = simt::thread_rank(block), y = thread / 16, x = thread % 16;
    const int tile = static_cast<int>(tile_floats(a.width) * sizeof(float));
    const auto floats = [&](int i) { return simt::dynamic_shared<float>(block, i * tile); };
    const auto query = floats(0), key = floats(1), value = floats(2), weight = floats(3);
    load_tile(block, rows_of(a.query, h), a.query.of_row, first, h.queries, a.width, a.round, query);
    float largest[4], denominator[4];
    TWINBENCH_UNROLL
    for (int i = 0; i < 4; ++i) largest[i] = -INFINITY, denominator[i] = 0.0f;
    Columns sums = {};
    for (int begin = 0; begin < h.keys; begin += kTileRows) {
      const std::uint64_t taken = taken_keys(block, a, h, begin);
      if (taken == 0) continue;
      load_tile(block, rows_of(a.key, h), a.key.of_row, begin, h.keys, a.width, a.round, key);
      load_tile(block, rows_of(a.value, h), a.value.of_row, begin, h.keys, a.width, a.round, value);
      block.barrier();
      FourByFour scores = multiply_tiles(simt::dynamic_shared<kernels::Floats<4>>(block),
                                         simt::dynamic_shared<kernels::Floats<4>>(block, tile), a.width, y, x);
      TWINBENCH_UNROLL
      for (int i = 0; i < 4; ++i)
        weigh(block, a.scale * static_cast<float>(kLog2E), taken, x, scores.of[i], largest[i], denominator[i],
              sums.of[i]);
      TWINBENCH_UNROLL
      for (int i = 0; i < 4; ++i) {
        TWINBENCH_UNROLL
        for (int j = 0; j < 4; ++j) weight[(4 * x + j) * kTilePitch + 4 * y + i] = scores.of[i][j];
      }
      block.barrier();
      add_products(sums, simt::dynamic_shared<kernels::Floats<4>>(block, 3 * tile), value, a.width, y, x);
      block.barrier();
    }
    float inverse[4];
    TWINBENCH_UNROLL
    for (int i = 0; i < 4; ++i) {
      inverse[i] = 1.0f / denominator[i];
      const int row = first + 4 * y + i;
      if (a.largest && x == 0 && row < h.queries) {
        a.largest[h.statistics + row] = largest[i];
        a.denominator[h.statistics + row] = denominator[i];
      }
    }
    store_columns(sums, inverse, rows_of(a.out, h), a.out.of_row, first, h.queries, a.width, y, x);
  }

 private:
  // The online softmax of one query: four of its scores become exponentials.
  template <class Block>
  static TWINBENCH_DEVICE void weigh(Block& block, float scale, std::uint64_t taken, int x, float (&scores)[4],
                                     float& largest, float& denominator, float (&sums)[kMostColumns]) {
    float top = -INFINITY;
    TWINBENCH_UNROLL
    for (int j = 0; j < 4; ++j) {
      scores[j] = (taken >> (4 * x + j) & 1u) != 0 ? scale * scores[j] : -INFINITY;
      top = larger_score(scores[j], top);
    }
    const auto larger = [](float p, float q) { return larger_score(p, q); };
    top = larger(half_warp_reduce(block, top, larger), largest);
    const float below = subtrahend(top), factor = power_below(largest - below);
    float part = 0.0f;
    TWINBENCH_UNROLL
    for (int j = 0; j < 4; ++j) {
      scores[j] = power_below(scores[j] - below);
      part += scores[j];
    }
    denominator = denominator * factor + half_warp_reduce(block, part, simt::Sum{});
    largest = top;
    TWINBENCH_UNROLL
    for (int c = 0; c < kMostColumns; ++c) sums[c] *= factor;
  }
};

}  // namespace twinbench::energy_flow
