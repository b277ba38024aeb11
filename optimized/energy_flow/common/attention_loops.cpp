// The loops of attention on the CPU: a tile holds up to kLanes queries, one a lane; keys come in blocks of kKeys.
//
// A lane never touches another one, and its sums run over keys and columns in ascending order, those of a query over
// keys in parts of kSummed: a query gives the same bits in any tile, for any number of threads.
#include "optimized/energy_flow/common/attention_loops.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "src/common/cpu_clones.h"

namespace twinbench::energy_flow {
namespace {

constexpr int kVector = 16;           // lanes of a vector
constexpr std::int64_t kLanes = 48;   // queries of a tile: three vectors of 16
constexpr std::int64_t kKeys = 64;    // of a block: its scores take 12 KiB
constexpr std::int64_t kSummed = 32;  // keys summed one by one: weights are positive, so errors of a long sum add up
constexpr int kSumRows = 8;           // whose sums stay in registers, three vectors each

std::int64_t whole_vectors(std::int64_t count) { return (count + kVector - 1) / kVector * kVector; }

// out[r][lane] (+)= sum_k coefficient[r * of_row + k * of_inner] * in[k * in_row + lane].
template <class Real>
struct LaneProduct {
  std::int64_t depth = 0;
  const Real* coefficient = nullptr;
  std::int64_t of_row = 0, of_inner = 0;
  const Real* in = nullptr;
  std::int64_t in_row = 0;
  Real* out = nullptr;
  std::int64_t out_row = 0;
  bool add = false;
};

template <int kRows, int kVectors, class Real>
inline __attribute__((always_inline)) void lane_rows(const LaneProduct<Real>& p, std::int64_t row, std::int64_t lane) {
  Real sum[kRows][kVectors][kVector] = {};
  const Real* __restrict coefficient = p.coefficient + row * p.of_row;
  const Real* __restrict in = p.in + lane;
  for (std::int64_t k = 0; k < p.depth; ++k) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Real factor = coefficient[r * p.of_row + k * p.of_inner];
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 1
        for (int i = 0; i < kVector; ++i)
          sum[r][v][i] = fused(factor, in[k * p.in_row + v * kVector + i], sum[r][v][i]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    Real* __restrict out = p.out + (row + r) * p.out_row + lane;
    for (int v = 0; v < kVectors && p.add; ++v)
      for (int i = 0; i < kVector; ++i) sum[r][v][i] += out[v * kVector + i];
    for (int v = 0; v < kVectors; ++v)
      for (int i = 0; i < kVector; ++i) out[v * kVector + i] = sum[r][v][i];
  }
}

template <int kVectors, class Real>
inline __attribute__((always_inline)) void lane_columns(const LaneProduct<Real>& p, std::int64_t rows,
                                                        std::int64_t lane) {
  std::int64_t row = 0;
  for (; row + kSumRows <= rows; row += kSumRows) lane_rows<kSumRows, kVectors>(p, row, lane);
  for (; row + 2 <= rows; row += 2) lane_rows<2, kVectors>(p, row, lane);
  for (; row < rows; ++row) lane_rows<1, kVectors>(p, row, lane);
}

template <class Real>
inline __attribute__((always_inline)) void multiply_lanes(const LaneProduct<Real>& p, std::int64_t rows,
                                                          std::int64_t lanes) {
  std::int64_t lane = 0;
  for (; lane + 3 * kVector <= lanes; lane += 3 * kVector) lane_columns<3>(p, rows, lane);
  if (lanes - lane == 2 * kVector) lane_columns<2>(p, rows, lane);
  if (lanes - lane == kVector) lane_columns<1>(p, rows, lane);
}

// Where the parts of a thread's scratch begin; of no memory, how much they take. Rows of `wide` are whole vectors.
template <class Real>
struct Scratch {
  Scratch(Real* memory, std::int64_t width, std::int64_t keys, bool backward) : wide(whole_vectors(width)) {
    const auto take = [&](std::int64_t count) {
      Real* const here = memory ? memory + floats : nullptr;
      floats += count;
      return here;
    };
    query = take(wide * kLanes), scores = take(kKeys * kLanes), sums = take(wide * kLanes);
    largest = take(kLanes), denominator = take(kLanes), factor = take(kLanes);
    keys_of_block = take(kKeys * wide), values_of_block = take(kKeys * wide);
    if (backward) {
      gradient = take(wide * kLanes), slopes = take(kKeys * kLanes);
      query_rows = take(kLanes * wide), gradient_rows = take(kLanes * wide);
      grad_key = take(keys * wide), grad_value = take(keys * wide);
    }
  }

  std::int64_t wide, floats = 0;                // floats: of all of it
  Real *query, *scores, *sums;                  // [wide][kLanes], [kKeys][kLanes], [kLanes][wide]
  Real *largest, *denominator, *factor;         // [kLanes]
  Real *keys_of_block, *values_of_block;        // [kKeys][wide], rounded
  Real *gradient = nullptr, *slopes = nullptr;  // [wide][kLanes] of the result, [kKeys][kLanes] of the scores
  Real *query_rows = nullptr, *gradient_rows = nullptr, *grad_key = nullptr, *grad_value = nullptr;  // [...][wide]
};

// One head of one sample.
template <class Real>
struct Head {
  Head(const Attention<Real>& a, std::int64_t index) {
    const std::int64_t sample = index / a.heads, head = index % a.heads;
    const std::int64_t first = a.first_row ? a.first_row[sample] : 0;
    const auto place = [&](const auto& rows) {
      return rows.data == nullptr ? nullptr
                                  : rows.data + sample * rows.of_sample + head * rows.of_head + first * rows.of_row;
    };
    query = place(a.query), key = place(a.key), value = place(a.value), out = place(a.out);
    grad_out = place(a.grad_out);
    grad_query = place(a.grad_query), grad_key = place(a.grad_key), grad_value = place(a.grad_value);
    queries = a.length ? a.length[sample] : a.queries;
    keys = a.length ? a.length[sample] : a.keys;
    padding = a.padding ? a.padding + sample * a.keys : nullptr;
    statistics = index * a.queries;
  }
  // Whether all of these keys are left out: a block without a score is skipped.
  bool left_out(std::int64_t begin, std::int64_t end) const {
    return padding && std::all_of(padding + begin, padding + end, [](bool out) { return out; });
  }

  const Real *query, *key, *value, *grad_out;
  Real *out, *grad_query, *grad_key, *grad_value;
  std::int64_t queries, keys, statistics;
  const bool* padding;
};

// to[c][lane] = scale * operand(from[lane][c]); lanes beyond `count` are zeros.
template <class Real>
inline __attribute__((always_inline)) void load_lanes(const Real* from, std::int64_t of_row, std::int64_t count,
                                                      std::int64_t lanes, std::int64_t width, bool round, Real scale,
                                                      Real* __restrict to) {
  for (std::int64_t lane = 0; lane < count; ++lane)
    for (std::int64_t c = 0; c < width; ++c) to[c * kLanes + lane] = from[lane * of_row + c];
  for (std::int64_t c = 0; c < width; ++c) {
    for (std::int64_t lane = count; lane < lanes; ++lane) to[c * kLanes + lane] = Real(0);
    if (round)
      for (std::int64_t lane = 0; lane < lanes; ++lane)
        to[c * kLanes + lane] = kernels::round_to_bf16(to[c * kLanes + lane]);
    for (std::int64_t lane = 0; lane < lanes; ++lane) to[c * kLanes + lane] *= scale;
  }
}

// Rows as operands, `wide` apart and filled with zeros.
template <class Real>
inline __attribute__((always_inline)) void load_rows(const Real* from, std::int64_t of_row, std::int64_t rows,
                                                     std::int64_t width, std::int64_t wide, bool round,
                                                     Real* __restrict to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < width; ++c) to[row * wide + c] = from[row * of_row + c];
    for (std::int64_t c = width; c < wide; ++c) to[row * wide + c] = Real(0);
    if (round)
      for (std::int64_t c = 0; c < width; ++c) to[row * wide + c] = kernels::round_to_bf16(to[row * wide + c]);
  }
}

// Keys or values of a block: where they lie, or copies, rounded and of whole vectors.
template <class Real>
struct BlockRows {
  const Real* data;
  std::int64_t of_row;
};
template <class Real>
inline __attribute__((always_inline)) BlockRows<Real> block_rows(const Attention<Real>& a, const Real* from,
                                                                 std::int64_t of_row, std::int64_t begin,
                                                                 std::int64_t count, std::int64_t wide, Real* copy) {
  if (!a.round && a.width == wide) return {from + begin * of_row, of_row};
  load_rows(from + begin * of_row, of_row, count, a.width, wide, a.round, copy);
  return {copy, wide};
}

// scores[key][lane] = key . query, which is scaled, as a power of two; minus infinity where the key is left out.
template <class Real>
inline __attribute__((always_inline)) void score_block(const Attention<Real>& a, const Head<Real>& head,
                                                       const BlockRows<Real>& keys, std::int64_t begin,
                                                       std::int64_t count, std::int64_t lanes, const Scratch<Real>& s) {
  multiply_lanes<Real>({.depth = a.width,
                        .coefficient = keys.data,
                        .of_row = keys.of_row,
                        .of_inner = 1,
                        .in = s.query,
                        .in_row = kLanes,
                        .out = s.scores,
                        .out_row = kLanes},
                       count, lanes);
  for (std::int64_t key = 0; head.padding && key < count; ++key)
    if (head.padding[begin + key]) std::fill_n(s.scores + key * kLanes, lanes, Real(-INFINITY));
}

// The online softmax over one block: scores become exponentials, sums what is theirs.
template <class Real>
inline __attribute__((always_inline)) void weigh_block(std::int64_t count, std::int64_t lanes, const Scratch<Real>& s) {
  Real* __restrict largest = s.largest;
  Real* __restrict denominator = s.denominator;
  Real* __restrict factor = s.factor;
  for (std::int64_t first = 0; first < lanes; first += kVector) {
    Real top[kVector], below[kVector], sum[kVector] = {};
    for (int i = 0; i < kVector; ++i) top[i] = largest[first + i];
    for (std::int64_t key = 0; key < count; ++key)
      for (int i = 0; i < kVector; ++i) top[i] = larger_score(s.scores[key * kLanes + first + i], top[i]);
    for (int i = 0; i < kVector; ++i) {
      below[i] = subtrahend(top[i]);
      factor[first + i] = power_below(largest[first + i] - below[i]);  // of what minus infinity leads: 0
      largest[first + i] = top[i];
    }
    for (std::int64_t begin = 0; begin < count; begin += kSummed) {
      Real part[kVector] = {};
      for (std::int64_t key = begin; key < std::min(begin + kSummed, count); ++key) {
        Real* __restrict row = s.scores + key * kLanes + first;
        for (int i = 0; i < kVector; ++i) {
          row[i] = power_below(row[i] - below[i]);
          part[i] += row[i];
        }
      }
      for (int i = 0; i < kVector; ++i) sum[i] += part[i];
    }
    for (int i = 0; i < kVector; ++i) denominator[first + i] = denominator[first + i] * factor[first + i] + sum[i];
  }
}

// Rows of `sums` by a factor each.
template <class Real>
inline __attribute__((always_inline)) void scale_sums(std::int64_t rows, const Scratch<Real>& s) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t c = 0; c < s.wide; ++c) s.sums[row * s.wide + c] *= s.factor[row];
}
template <class Real>
inline __attribute__((always_inline)) void store_sums(const Scratch<Real>& s, std::int64_t count, std::int64_t width,
                                                      Real* to, std::int64_t of_row) {
  for (std::int64_t row = 0; row < count; ++row)
    for (std::int64_t c = 0; c < width; ++c) to[row * of_row + c] = s.sums[row * s.wide + c];
}

template <class Real>
inline __attribute__((always_inline)) void attend_tile(const Attention<Real>& a, const Head<Real>& head,
                                                       std::int64_t first, std::int64_t count, const Scratch<Real>& s) {
  const std::int64_t lanes = whole_vectors(count);
  load_lanes(head.query + first * a.query.of_row, a.query.of_row, count, lanes, a.width, a.round,
             a.scale * static_cast<Real>(kLog2E), s.query);
  std::fill_n(s.largest, kLanes, Real(-INFINITY));
  std::fill_n(s.denominator, kLanes, Real(0));
  bool begun = false;
  for (std::int64_t begin = 0; begin < head.keys; begin += kKeys) {
    const std::int64_t keys = std::min(kKeys, head.keys - begin);
    if (head.left_out(begin, begin + keys)) continue;
    score_block(a, head, block_rows(a, head.key, a.key.of_row, begin, keys, s.wide, s.keys_of_block), begin, keys,
                lanes, s);
    weigh_block(keys, lanes, s);
    if (begun) scale_sums(lanes, s);
    const auto values = block_rows(a, head.value, a.value.of_row, begin, keys, s.wide, s.values_of_block);
    for (std::int64_t part = 0; part < keys; part += kSummed, begun = true)
      multiply_lanes<Real>({.depth = std::min(kSummed, keys - part),
                            .coefficient = s.scores + part * kLanes,
                            .of_row = 1,
                            .of_inner = kLanes,
                            .in = values.data + part * values.of_row,
                            .in_row = values.of_row,
                            .out = s.sums,
                            .out_row = s.wide,
                            .add = begun},
                           lanes, s.wide);
  }
  if (!begun) std::fill_n(s.sums, kLanes * s.wide, Real(0));
  for (std::int64_t lane = 0; lane < lanes; ++lane) s.factor[lane] = Real(1) / s.denominator[lane];
  scale_sums(lanes, s);
  store_sums(s, count, a.width, head.out + first * a.out.of_row, a.out.of_row);
  if (!a.largest) return;
  std::copy_n(s.largest, count, a.largest + head.statistics + first);
  std::copy_n(s.denominator, count, a.denominator + head.statistics + first);
}

// Items [begin, end): tile `item % tiles` of head `item / tiles`.
template <class Real>
inline __attribute__((always_inline)) void attend_tiles(const Attention<Real>& a, std::int64_t tiles,
                                                        std::int64_t begin, std::int64_t end, Real* memory) {
  const Scratch<Real> scratch(memory, a.width, a.keys, false);
  for (std::int64_t item = begin; item < end; ++item) {
    const Head<Real> head(a, item / tiles);
    const std::int64_t first = item % tiles * kLanes;
    if (first < head.queries) attend_tile(a, head, first, std::min(kLanes, head.queries - first), scratch);
  }
}

// What a tile of queries sends back: to its own rows, and to all keys and values of its head.
template <class Real>
inline __attribute__((always_inline)) void send_back_tile(const Attention<Real>& a, const Head<Real>& head,
                                                          std::int64_t first, std::int64_t count,
                                                          const Scratch<Real>& s) {
  const std::int64_t lanes = whole_vectors(count), wide = s.wide;
  const Real* const query = head.query + first * a.query.of_row;
  const Real* const gradient = head.grad_out + first * a.grad_out.of_row;
  load_lanes(query, a.query.of_row, count, lanes, a.width, a.round, a.scale * static_cast<Real>(kLog2E), s.query);
  load_lanes(gradient, a.grad_out.of_row, count, lanes, a.width, a.round, Real(1), s.gradient);
  load_rows(query, a.query.of_row, count, a.width, wide, a.round, s.query_rows);
  load_rows(gradient, a.grad_out.of_row, count, a.width, wide, a.round, s.gradient_rows);
  std::fill_n(s.sums, kLanes * wide, Real(0));
  Real* __restrict share = s.factor;
  Real* __restrict largest = s.largest;
  Real* __restrict inverse = s.denominator;
  std::fill_n(share, kLanes, Real(0));
  std::fill_n(largest, kLanes, Real(0));
  std::fill_n(inverse, kLanes, Real(0));
  for (std::int64_t lane = 0; lane < count; ++lane) {
    const Real* const out = head.out + (first + lane) * a.out.of_row;
    for (std::int64_t c = 0; c < a.width; ++c)
      share[lane] = fused(s.gradient_rows[lane * wide + c], out[c], share[lane]);
    largest[lane] = subtrahend(a.largest[head.statistics + first + lane]);
    inverse[lane] = Real(1) / a.denominator[head.statistics + first + lane];
  }
  for (std::int64_t begin = 0; begin < head.keys; begin += kKeys) {
    const std::int64_t keys = std::min(kKeys, head.keys - begin);
    if (head.left_out(begin, begin + keys)) continue;
    const auto key_rows = block_rows(a, head.key, a.key.of_row, begin, keys, wide, s.keys_of_block);
    const auto value_rows = block_rows(a, head.value, a.value.of_row, begin, keys, wide, s.values_of_block);
    score_block(a, head, key_rows, begin, keys, lanes, s);
    multiply_lanes<Real>({.depth = a.width,
                          .coefficient = value_rows.data,
                          .of_row = value_rows.of_row,
                          .of_inner = 1,
                          .in = s.gradient,
                          .in_row = kLanes,
                          .out = s.slopes,
                          .out_row = kLanes},
                         keys, lanes);
    for (std::int64_t key = 0; key < keys; ++key) {
      Real* __restrict row = s.scores + key * kLanes;
      Real* __restrict slope = s.slopes + key * kLanes;
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        row[lane] = power_below(row[lane] - largest[lane]) * inverse[lane];
        slope[lane] = a.scale * score_gradient(row[lane], slope[lane], share[lane]);
      }
    }
    multiply_lanes<Real>({.depth = count,
                          .coefficient = s.scores,
                          .of_row = kLanes,
                          .of_inner = 1,
                          .in = s.gradient_rows,
                          .in_row = wide,
                          .out = s.grad_value + begin * wide,
                          .out_row = wide,
                          .add = true},
                         keys, wide);
    multiply_lanes<Real>({.depth = count,
                          .coefficient = s.slopes,
                          .of_row = kLanes,
                          .of_inner = 1,
                          .in = s.query_rows,
                          .in_row = wide,
                          .out = s.grad_key + begin * wide,
                          .out_row = wide,
                          .add = true},
                         keys, wide);
    multiply_lanes<Real>({.depth = keys,
                          .coefficient = s.slopes,
                          .of_row = 1,
                          .of_inner = kLanes,
                          .in = key_rows.data,
                          .in_row = key_rows.of_row,
                          .out = s.sums,
                          .out_row = wide,
                          .add = true},
                         lanes, wide);
  }
  store_sums(s, count, a.width, head.grad_query + first * a.grad_query.of_row, a.grad_query.of_row);
}

template <class Real>
inline __attribute__((always_inline)) void send_back_heads(const Attention<Real>& a, std::int64_t begin,
                                                           std::int64_t end, Real* memory) {
  const Scratch<Real> s(memory, a.width, a.keys, true);
  for (std::int64_t index = begin; index < end; ++index) {
    const Head<Real> head(a, index);
    std::fill_n(s.grad_key, head.keys * s.wide, Real(0));
    std::fill_n(s.grad_value, head.keys * s.wide, Real(0));
    for (std::int64_t first = 0; first < head.queries; first += kLanes)
      send_back_tile(a, head, first, std::min(kLanes, head.queries - first), s);
    for (std::int64_t key = 0; key < head.keys; ++key) {
      std::copy_n(s.grad_key + key * s.wide, a.width, head.grad_key + key * a.grad_key.of_row);
      std::copy_n(s.grad_value + key * s.wide, a.width, head.grad_value + key * a.grad_value.of_row);
    }
  }
}

TWINBENCH_CPU_CLONES void attend(const Attention<float>& a, std::int64_t tiles, std::int64_t begin, std::int64_t end,
                                 float* memory) {
  attend_tiles(a, tiles, begin, end, memory);
}
TWINBENCH_CPU_CLONES void send_back(const Attention<float>& a, std::int64_t begin, std::int64_t end, float* memory) {
  send_back_heads(a, begin, end, memory);
}
// fp64 proves gradients and is never timed: one form for every processor.
void attend(const Attention<double>& a, std::int64_t tiles, std::int64_t begin, std::int64_t end, double* memory) {
  attend_tiles(a, tiles, begin, end, memory);
}
void send_back(const Attention<double>& a, std::int64_t begin, std::int64_t end, double* memory) {
  send_back_heads(a, begin, end, memory);
}

}  // namespace

template <class Real>
AttentionLoops<Real>::AttentionLoops(std::int64_t heads_of_all, std::int64_t queries, std::int64_t keys,
                                     std::int64_t width, bool backward)
    : tiles_((queries + kLanes - 1) / kLanes),
      tile_pieces_(Pieces::of(heads_of_all * tiles_, grain(keys * width * kLanes, 1 << 19), at::get_num_threads(), 1)),
      head_pieces_(Pieces::of(heads_of_all, grain(keys * width * queries, 1 << 17), at::get_num_threads(), 1)),
      floats_(Scratch<Real>(nullptr, width, keys, backward).floats),
      scratch_(at::empty({std::max(tile_pieces_.number(), backward ? head_pieces_.number() : 0), floats_},
                         c10::CppTypeToScalarType<Real>::value)) {}

template <class Real>
void AttentionLoops<Real>::forward(const Attention<Real>& attention) const {
  tile_pieces_.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    attend(attention, tiles_, begin, end, data<Real>(scratch_) + piece * floats_);
  });
}

template <class Real>
void AttentionLoops<Real>::backward(const Attention<Real>& attention) const {
  head_pieces_.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    send_back(attention, begin, end, data<Real>(scratch_) + piece * floats_);
  });
}

template class AttentionLoops<float>;
template class AttentionLoops<double>;

}  // namespace twinbench::energy_flow
