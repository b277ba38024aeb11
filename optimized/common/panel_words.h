// Operands as the panels' loops take them: numbers, or pairs of bf16 values in the place of one float. Packing of rows
// and of a panel in every run, and of constant weights once, at set-up.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "kernels/common/panel_block.h"

namespace twinbench {

using kernels::kPanelColumns, kernels::kPanelDepth, kernels::kPanelLanes, kernels::kPanelRows, kernels::kPanelVectors;
using kernels::PanelBlock, kernels::PanelWay, kernels::panel_way, kernels::multiply_block;

// Words that `inner` numbers take.
inline std::int64_t panel_words(PanelWay way, std::int64_t inner) {
  return way == PanelWay::kPairs ? (inner + 1) / 2 : inner;
}

// The lower half is the earlier one on the inner axis.
inline __attribute__((always_inline)) float bf16_pair(float early, float late) {
  const std::uint32_t low = kernels::bits_of(kernels::round_to_bf16(early)) >> 16;
  return kernels::float_of_bits(low | kernels::bits_of(kernels::round_to_bf16(late)));
}

// A row that lies together, in words; an odd last value is paired with zero.
TWINBENCH_CPU_CLONES static void pair_row(const float* __restrict from, float* __restrict to, std::int64_t inner) {
  for (std::int64_t k = 0; k < inner / 2; ++k) to[k] = bf16_pair(from[2 * k], from[2 * k + 1]);
  if (inner % 2) to[inner / 2] = bf16_pair(from[inner - 1], 0);
}

// x[row * x_row + k * x_inner] to [blocks of kPanelRows][words][kPanelRows]; rows past the last are not written.
template <class Real>
struct RowPacking {
  PanelWay way = PanelWay::kLoops;
  bool bf16 = false;  // rounded to that
  std::int64_t rows = 0, depth = 0;
  const Real* x = nullptr;
  std::int64_t x_row = 0, x_inner = 0;
};

// One place on the inner axis (of kPairs: two) of a block's rows; `late` is null where there is no second.
template <class Real>
inline __attribute__((always_inline)) void pack_place(const RowPacking<Real>& p, const Real* __restrict early,
                                                      const Real* __restrict late, std::int64_t x_row,
                                                      std::int64_t rows, Real* __restrict to) {
  if constexpr (std::is_same_v<Real, float>) {
    if (p.way == PanelWay::kPairs) {
      for (std::int64_t r = 0; r < rows; ++r) to[r] = bf16_pair(early[r * x_row], late ? late[r * x_row] : 0);
      return;
    }
  }
  if (p.bf16)
    for (std::int64_t r = 0; r < rows; ++r) to[r] = kernels::round_to_bf16(early[r * x_row]);
  else
    for (std::int64_t r = 0; r < rows; ++r) to[r] = early[r * x_row];
}

template <class Real>
inline __attribute__((always_inline)) void pack_blocks(const RowPacking<Real>& p, Real* __restrict to) {
  const std::int64_t each = p.way == PanelWay::kPairs ? 2 : 1;
  for (std::int64_t first = 0; first < p.rows; first += kPanelRows)
    for (std::int64_t k = 0; k < p.depth; k += each, to += kPanelRows) {
      const Real* early = p.x + first * p.x_row + k * p.x_inner;
      const Real* late = k + 1 < p.depth ? early + p.x_inner : nullptr;
      const std::int64_t rows = std::min<std::int64_t>(kPanelRows, p.rows - first);
      if (p.x_row == 1 && rows == kPanelRows)  // a vector
        pack_place(p, early, late, 1, kPanelRows, to);
      else
        pack_place(p, early, late, p.x_row, rows, to);
    }
}

TWINBENCH_CPU_CLONES static void pack_rows(const RowPacking<float>& p, float* to) { pack_blocks(p, to); }
static void pack_rows(const RowPacking<double>& p, double* to) { pack_blocks(p, to); }

// w[k * w_inner + c] to [words][vectors * kPanelLanes], zeros past the last column. Of kPairs: values of bf16.
template <class Real>
struct PanelPacking {
  PanelWay way = PanelWay::kLoops;
  std::int64_t depth = 0, columns = 0;
  const Real* w = nullptr;
  std::int64_t w_inner = 0;
};

template <class Real>
inline __attribute__((always_inline)) void pack_columns(const PanelPacking<Real>& p, Real* __restrict to) {
  const std::int64_t width = (p.columns + kPanelLanes - 1) / kPanelLanes * kPanelLanes;
  const std::int64_t each = p.way == PanelWay::kPairs ? 2 : 1;
  for (std::int64_t k = 0; k < p.depth; k += each, to += width) {
    const Real* __restrict early = p.w + k * p.w_inner;
    if constexpr (std::is_same_v<Real, float>) {
      if (p.way == PanelWay::kPairs) {
        const bool last = k + 1 == p.depth;
        const Real* __restrict late = last ? early : early + p.w_inner;
        for (std::int64_t c = 0; c < p.columns; ++c) to[c] = bf16_pair(early[c], last ? 0 : late[c]);
      } else {
        std::copy_n(early, p.columns, to);
      }
    } else {
      std::copy_n(early, p.columns, to);
    }
    std::fill(to + p.columns, to + width, Real(0));
  }
}

TWINBENCH_CPU_CLONES static void pack_panel(const PanelPacking<float>& p, float* to) { pack_columns(p, to); }
static void pack_panel(const PanelPacking<double>& p, double* to) { pack_columns(p, to); }

// A constant [inner, columns] as panels one after the other, each over all of the inner axis.
inline at::Tensor packed_panels(const at::Tensor& weights, PanelWay way) {
  const std::int64_t inner = weights.size(0), columns = weights.size(1), words = panel_words(way, inner);
  const std::int64_t width = (columns + kPanelLanes - 1) / kPanelLanes * kPanelLanes;
  at::Tensor packed = at::empty({words * width}, weights.options());
  const at::Tensor source = weights.contiguous();
  const auto pack = [&]<class Real>(Real*) {
    for (std::int64_t first = 0; first < columns; first += kPanelColumns)
      pack_panel(PanelPacking<Real>{.way = way,
                                    .depth = inner,
                                    .columns = std::min<std::int64_t>(kPanelColumns, columns - first),
                                    .w = source.const_data_ptr<Real>() + first,
                                    .w_inner = columns},
                 packed.mutable_data_ptr<Real>() + first * words);
  };
  if (packed.scalar_type() == at::kDouble)
    pack(static_cast<double*>(nullptr));
  else
    pack(static_cast<float*>(nullptr));
  return packed;
}

// Some rows, as words that lie together, times such panels: out[row][c] (+)= ...
template <class Real>
struct PackedProduct {
  PanelWay way = PanelWay::kLoops;
  std::int64_t inner = 0, columns = 0;
  const Real* x = nullptr;
  std::int64_t x_row = 0;  // in words
  const Real* panels = nullptr;
  Real* out = nullptr;
  std::int64_t out_row = 0;
  bool add = false;
};

// Columns [first, first + kPanelColumns), a panel, of `rows` rows, to `out`: which is that column of the first row.
template <class Real>
void multiply_packed_panel(const PackedProduct<Real>& p, std::int64_t rows, std::int64_t first, Real* out) {
  const std::int64_t words = panel_words(p.way, p.inner), depth = panel_words(p.way, kPanelDepth);
  PanelBlock<Real> block{.rows = rows, .x_row = p.x_row, .out = out, .out_row = p.out_row};
  block.columns = std::min<std::int64_t>(kPanelColumns, p.columns - first);
  for (std::int64_t k = 0; k < std::max<std::int64_t>(1, words); k += depth) {
    block.depth = std::min(depth, words - k);
    block.x = p.x + k;
    block.panel = p.panels + first * words + k * block.vectors() * kPanelLanes;
    block.ahead = block.panel + block.depth * block.vectors() * kPanelLanes;
    block.fresh = k == 0 && !p.add;
    multiply_block(p.way, block);
  }
}

template <class Real>
void multiply_packed(const PackedProduct<Real>& p, std::int64_t rows) {
  for (std::int64_t first = 0; first < p.columns; first += kPanelColumns)
    multiply_packed_panel(p, rows, first, p.out + first);
}

}  // namespace twinbench
