// The kernels of sem.cayley: rotation and product of a block's rows; the same backward; edges and sums.
#pragma once

#include "kernels/common/column_sums.h"
#include "kernels/common/simt_handover.h"
#include "kernels/sem/cayley/product_kernel.h"
#include "kernels/sem/common/edges_kernel.h"

namespace twinbench::sem::cayley {

// Turns a row in place; `alpha` in the lane's pairs.
struct Turns {
  Pair sine[kMostPairs], cosine[kMostPairs], intensity[kMostPairs];
};
template <bool kWide>
TWINBENCH_DEVICE void load_alpha(const float* alpha, int dim, int lane, Pair (&pairs)[kMostPairs]) {
  TWINBENCH_UNROLL
  for (int p = 0; p < kMostPairs; ++p) pairs[p] = load_pair<kWide>(alpha, 2 * (lane + simt::kWarpSize * p), dim);
}
TWINBENCH_DEVICE Turns turns_of(const LanePairs& psi, const Pair (&alpha)[kMostPairs], float floor) {
  Turns turns;
  TWINBENCH_UNROLL
  for (int p = 0; p < kMostPairs; ++p) {
    TWINBENCH_UNROLL
    for (int i = 0; i < 2; ++i) {
      turns.intensity[p].of[i] = intensity_of<float>({psi.re[p].of[i], psi.im[p].of[i]}, floor);
      const auto by = kernels::sine_cosine(alpha[p].of[i] * turns.intensity[p].of[i]);
      turns.sine[p].of[i] = by.sine;
      turns.cosine[p].of[i] = by.cosine;
    }
  }
  return turns;
}

// Grid: a block of rows_of(kOperand) rows.
template <Operand kOperand, bool kWide>
struct ForwardAs {
  static constexpr int kMaxThreads = kThreads;
  static constexpr int kMinBlocksPerSm = 2;  // one turns its rows while the other multiplies
  static std::int64_t documented_shared_bytes() { return OperandTile<kOperand>::bytes(256); }
  using Tile = OperandTile<kOperand>;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ForwardArguments& a) const {
    auto back = simt::shared_array<float, Tile::kRows>(block);
    auto bad = simt::shared_array<int, Tile::kRows>(block);
    const std::int64_t first = std::int64_t{block.index().x} * Tile::kRows;
    const int thread = simt::thread_rank(block);
    if (thread < Tile::kRows) bad[thread] = 0;
    turn_rows(block, a, first, back);
    block.barrier();
    multiply_rows<kOperand, false, kWide>(block, simt::dynamic_shared<std::uint16_t>(block), back, a.matrix, a.dim,
                                          first, a.rows, a.x, bad);
    block.barrier();
    if (simt::warp(block) == 0) count(block, a, bad);
    if (simt::is_last_block(block, a.handover + 1, block.grid().x) && thread == 0) {
      *a.nonfinite_rows = static_cast<std::int32_t>(a.handover[0]);
      a.handover[0] = 0;
    }
  }

 private:
  // A warp a row: the turned row, scaled, as halves.
  template <class Block, class Back>
  static TWINBENCH_DEVICE void turn_rows(Block& block, const ForwardArguments& a, std::int64_t first, Back back) {
    auto words = simt::dynamic_shared<std::uint32_t>(block);
    const int lane = simt::lane(block), pitch = Tile::pitch(a.dim);
    Pair alpha[kMostPairs];
    load_alpha<kWide>(a.alpha, a.dim, lane, alpha);
    TWINBENCH_ROLLED
    for (int row = simt::warp(block); row < Tile::kRows; row += kWarps) {
      LanePairs values{};
      if (first + row < a.rows) load_row<kWide>(a.psi, a.rows, first + row, a.dim, lane, values);
      const float mean = mean_square(block, values, a.dim);
      const RowScale scale = row_scale(mean);
      if (lane == 0) back[row] = scale.back / kMatrixScale;
      const Turns turns = turns_of(values, alpha, mean + kIntensityFloor<float>);
      TWINBENCH_UNROLL
      for (int p = 0; p < kMostPairs; ++p) {
        const int column = 2 * (lane + simt::kWarpSize * p);
        Pair re, im;
        TWINBENCH_UNROLL
        for (int i = 0; i < 2; ++i) {
          const auto result =
              turned<float>({values.re[p].of[i], values.im[p].of[i]}, {turns.sine[p].of[i], turns.cosine[p].of[i]});
          re.of[i] = result.re * scale.to;
          im.of[i] = result.im * scale.to;
        }
        if (column < pitch - 8) Tile::store(words, pitch, row, column, re, im);
      }
    }
  }

  template <class Block, class Bad>
  static TWINBENCH_DEVICE void count(Block& block, const ForwardArguments& a, Bad bad) {
    unsigned rows = 0;
    for (int row = simt::lane(block); row < Tile::kRows; row += simt::kWarpSize) {
      const int found = bad[row];
      rows += found != 0 ? 1u : 0u;
    }
    rows = simt::warp_sum(block, rows);
    if (rows > 0 && simt::lane(block) == 0) simt::atomic_add(block, a.handover, rows);
  }
};

// Grid: backward_blocks.
template <bool kWide>
struct BackwardAs {
  static constexpr int kMaxThreads = kThreads;
  static std::int64_t documented_shared_bytes() { return OperandTile<Operand::kSplit>::bytes(256); }
  using Tile = OperandTile<Operand::kSplit>;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BackwardArguments& a) const {
    auto back = simt::shared_array<float, Tile::kRows>(block);
    auto bad = simt::shared_array<int, Tile::kRows>(block);
    const std::int64_t first = std::int64_t{block.index().x} * Tile::kRows;
    const int thread = simt::thread_rank(block);
    if (thread < Tile::kRows) bad[thread] = 0;
    take_rows(block, a, first, back);
    block.barrier();
    // The product's rows are this block's own, so that their memory serves until they are turned back.
    multiply_rows<Operand::kSplit, true, kWide>(block, simt::dynamic_shared<std::uint16_t>(block), back, a.matrix,
                                                a.dim, first, a.rows, a.grad_psi, bad);
    block.barrier();
    turn_back(block, a, first);
  }

 private:
  template <class Block, class Back>
  static TWINBENCH_DEVICE void take_rows(Block& block, const BackwardArguments& a, std::int64_t first, Back back) {
    auto words = simt::dynamic_shared<std::uint32_t>(block);
    const int lane = simt::lane(block), pitch = Tile::pitch(a.dim);
    TWINBENCH_ROLLED
    for (int row = simt::warp(block); row < Tile::kRows; row += kWarps) {
      LanePairs values{};
      if (first + row < a.rows) load_row<kWide>(a.grad_x, a.rows, first + row, a.dim, lane, values);
      const RowScale scale = row_scale(mean_square(block, values, a.dim));
      if (lane == 0) back[row] = scale.back / kMatrixScale;
      TWINBENCH_UNROLL
      for (int p = 0; p < kMostPairs; ++p) {
        const int column = 2 * (lane + simt::kWarpSize * p);
        const auto scaled = [&](const Pair& pair) {
          return kernels::map(pair, [&](float value) { return value * scale.to; });
        };
        if (column < pitch - 8) Tile::store(words, pitch, row, column, scaled(values.re[p]), scaled(values.im[p]));
      }
    }
  }

  // A warp a row. Alpha's terms stay in the lanes until the block's rows are through.
  template <class Block>
  static TWINBENCH_DEVICE void turn_back(Block& block, const BackwardArguments& a, std::int64_t first) {
    const int lane = simt::lane(block);
    Pair alpha[kMostPairs], sums[kMostPairs] = {};
    load_alpha<kWide>(a.alpha, a.dim, lane, alpha);
    TWINBENCH_ROLLED
    for (int place = simt::warp(block); place < Tile::kRows && first + place < a.rows; place += kWarps) {
      const std::int64_t row = first + place;
      LanePairs psi, gradient;
      load_row<kWide>(a.psi, a.rows, row, a.dim, lane, psi);
      load_row<kWide>(a.grad_psi, a.rows, row, a.dim, lane, gradient);
      const float floor = mean_square(block, psi, a.dim) + kIntensityFloor<float>;
      const Turns turns = turns_of(psi, alpha, floor);
      write_factors(a, row, lane, psi, gradient, turns);
      Pair terms[kMostPairs];
      float mean = 0.0f;
      TWINBENCH_UNROLL
      for (int p = 0; p < kMostPairs; ++p) {
        TWINBENCH_UNROLL
        for (int i = 0; i < 2; ++i) {
          terms[p].of[i] =
              phase_gradient<float>({gradient.re[p].of[i], gradient.im[p].of[i]}, rotated(psi, turns, p, i));
          const float weighted = terms[p].of[i] * turns.intensity[p].of[i];
          sums[p].of[i] += weighted;
          mean += alpha[p].of[i] * weighted;
        }
      }
      mean = simt::warp_sum(block, mean) / static_cast<float>(a.dim);
      TWINBENCH_UNROLL
      for (int p = 0; p < kMostPairs; ++p) {
        const int column = 2 * (lane + simt::kWarpSize * p);
        Pair re, im;
        TWINBENCH_UNROLL
        for (int i = 0; i < 2; ++i) {
          const auto result = turned_back<float>(
              {gradient.re[p].of[i], gradient.im[p].of[i]}, {turns.sine[p].of[i], turns.cosine[p].of[i]},
              {psi.re[p].of[i], psi.im[p].of[i]}, alpha[p].of[i] * terms[p].of[i], mean, floor);
          re.of[i] = result.re;
          im.of[i] = result.im;
        }
        store_pair<kWide>(a.grad_psi + row * a.dim, column, a.dim, re);
        store_pair<kWide>(a.grad_psi + (a.rows + row) * a.dim, column, a.dim, im);
      }
    }
    add_terms(block, a, lane, sums);
  }

  static TWINBENCH_DEVICE Number<float> rotated(const LanePairs& psi, const Turns& turns, int p, int i) {
    return turned<float>({psi.re[p].of[i], psi.im[p].of[i]}, {turns.sine[p].of[i], turns.cosine[p].of[i]});
  }

  static TWINBENCH_DEVICE void write_factors(const BackwardArguments& a, std::int64_t row, int lane,
                                             const LanePairs& psi, const LanePairs& gradient, const Turns& turns) {
    TWINBENCH_UNROLL
    for (int p = 0; p < kMostPairs; ++p) {
      const int column = 2 * (lane + simt::kWarpSize * p);
      const std::int64_t re_row = row * a.dim, im_row = (a.rows + row) * a.dim;
      const Pair given_re = load_pair<kWide>(a.grad_x + re_row, column, a.dim),
                 given_im = load_pair<kWide>(a.grad_x + im_row, column, a.dim),
                 x_re = load_pair<kWide>(a.x + re_row, column, a.dim),
                 x_im = load_pair<kWide>(a.x + im_row, column, a.dim);
      Pair z_re, z_im, y_re, y_im;
      TWINBENCH_UNROLL
      for (int i = 0; i < 2; ++i) {
        const auto r = rotated(psi, turns, p, i);
        z_re.of[i] = 0.5f * (given_re.of[i] + gradient.re[p].of[i]);
        z_im.of[i] = 0.5f * (given_im.of[i] + gradient.im[p].of[i]);
        y_re.of[i] = x_im.of[i] + r.im;
        y_im.of[i] = -(x_re.of[i] + r.re);
      }
      store_pair<kWide>(a.z + re_row, column, a.dim, z_re);
      store_pair<kWide>(a.z + im_row, column, a.dim, z_im);
      store_pair<kWide>(a.y + re_row, column, a.dim, y_re);
      store_pair<kWide>(a.y + im_row, column, a.dim, y_im);
    }
  }

  // Warp after warp, in a fixed order. The operand's memory is free by now.
  template <class Block>
  static TWINBENCH_DEVICE void add_terms(Block& block, const BackwardArguments& a, int lane,
                                         const Pair (&sums)[kMostPairs]) {
    auto terms = simt::dynamic_shared<Pair>(block) + simt::warp(block) * (kMostDim / 2);
    auto all = simt::dynamic_shared<float>(block);
    TWINBENCH_UNROLL
    for (int p = 0; p < kMostPairs; ++p) terms[lane + simt::kWarpSize * p] = sums[p];
    block.barrier();
    for (int column = simt::thread_rank(block); column < a.dim; column += kThreads) {
      float sum = 0.0f;
      TWINBENCH_UNROLL
      for (int warp = 0; warp < kWarps; ++warp) {
        const float other = all[warp * kMostDim + column];
        sum += other;
      }
      a.alpha_terms[std::int64_t{block.index().x} * a.dim + column] = sum;
    }
  }
};

// Grid: sums of alpha's columns, kSumColumns a block, then the edges.
struct Parameters {
  static constexpr int kMaxThreads = kEdgeThreads;
  static_assert(kEdgeThreads == kernels::kSumThreads);

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ParameterArguments& a) const {
    const auto sum_blocks = static_cast<unsigned>((a.edges.dim + kernels::kSumColumns - 1) / kernels::kSumColumns);
    if (block.index().x < sum_blocks)
      sum_alpha(block, a);
    else
      edges_backward(block, a.edges, block.index().x - sum_blocks, block.grid().x - sum_blocks);
  }

 private:
  template <class Block>
  static TWINBENCH_DEVICE void sum_alpha(Block& block, const ParameterArguments& a) {
    const int dim = a.edges.dim;
    const bool wide = kernels::allows_four(dim, a.alpha_terms);
    kernels::sum_columns<1>(
        block, a.term_rows, dim,
        [&](std::int64_t row, std::int64_t column) {
          return kernels::ColumnTerms<1>{{kernels::load_columns(a.alpha_terms + row * dim, column, dim, wide)}};
        },
        [&](std::int64_t column, const float* sums) { a.grad_alpha[column] = sums[0]; });
  }
};

struct ForwardSplit : ForwardAs<Operand::kSplit, true> {};
struct ForwardSplitAnyWidth : ForwardAs<Operand::kSplit, false> {};
struct ForwardSingle : ForwardAs<Operand::kSingle, true> {};
struct ForwardSingleAnyWidth : ForwardAs<Operand::kSingle, false> {};
struct Backward : BackwardAs<true> {};
struct BackwardAnyWidth : BackwardAs<false> {};

}  // namespace twinbench::sem::cayley
