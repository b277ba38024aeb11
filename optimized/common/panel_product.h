// Matrix product on the CPU by loops of our own: columns in panels that are packed to lie in cache.
//
// Every element is summed over the inner axis in ascending order, in parts of kPanelDepth, whatever the other sizes
// are: a row gives the same bits alone and in any batch, for any number of threads.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include "optimized/common/panel_words.h"
#include "optimized/common/tensors.h"

namespace twinbench {

// out[row][c] (+)= sum_k x[row * x_row + k * x_inner] * w[k * w_inner + c].
template <class Real>
struct PanelProduct {
  std::int64_t inner = 0, columns = 0;
  const Real* x = nullptr;
  std::int64_t x_row = 0, x_inner = 0;
  const Real* w = nullptr;
  std::int64_t w_inner = 0;
  Real* out = nullptr;
  std::int64_t out_row = 0;
  bool add = false;
  bool bf16 = false;  // of operands of float: w holds values of bf16, x is rounded to them
};

// Rows [begin, end).
template <class Real>
void multiply_panels(const PanelProduct<Real>& p, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kPackedRows = 64;  // of x at once: 32 KiB
  alignas(64) Real panel[kPanelDepth * kPanelColumns];
  alignas(64) Real packed[kPanelDepth * kPackedRows];
  const PanelWay way = std::is_same_v<Real, float> ? panel_way(p.bf16) : PanelWay::kLoops;
  const bool packs = p.x_inner != 1 || p.x_row == 0 || p.bf16;
  const std::int64_t step = packs ? kPackedRows : std::max<std::int64_t>(1, end - begin);
  for (std::int64_t row = begin; row < end; row += step)
    for (std::int64_t k = 0; k < std::max<std::int64_t>(1, p.inner); k += kPanelDepth) {
      const std::int64_t depth = std::min(kPanelDepth, p.inner - k);
      PanelBlock<Real> block{.rows = std::min(step, end - row),
                             .depth = panel_words(way, depth),
                             .x = p.x + row * p.x_row + k * p.x_inner,
                             .x_row = p.x_row,
                             .out_row = p.out_row,
                             .fresh = k == 0 && !p.add};
      if (packs) {
        pack_rows(RowPacking<Real>{.way = way,
                                   .bf16 = p.bf16,
                                   .rows = block.rows,
                                   .depth = depth,
                                   .x = block.x,
                                   .x_row = p.x_row,
                                   .x_inner = p.x_inner},
                  packed);
        block.x = packed;
        block.x_row = 0;
      }
      for (std::int64_t first = 0; first < p.columns; first += kPanelColumns) {
        block.columns = std::min<std::int64_t>(kPanelColumns, p.columns - first);
        block.out = p.out + row * p.out_row + first;
        pack_panel(PanelPacking<Real>{.way = way,
                                      .depth = depth,
                                      .columns = block.columns,
                                      .w = p.w + k * p.w_inner + first,
                                      .w_inner = p.w_inner},
                   panel);
        block.panel = panel;
        multiply_block(way, block);
      }
    }
}

// out = a b, or out += a b; rows are shared among the threads. The columns of `out` and `b` lie next to one another.
template <class Real>
void multiply_in_panels(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add = false) {
  constexpr std::int64_t kWork = 2 << 20;  // multiply-adds that pay for waking a thread
  const PanelProduct<Real> product{.inner = a.size(1),
                                   .columns = b.size(1),
                                   .x = data<Real>(a),
                                   .x_row = a.stride(0),
                                   .x_inner = a.stride(1),
                                   .w = data<Real>(b),
                                   .w_inner = b.stride(0),
                                   .out = data<Real>(out),
                                   .out_row = out.stride(0),
                                   .add = add};
  const std::int64_t of_row = std::max<std::int64_t>(1, product.inner * product.columns);
  const std::int64_t grain = (kWork / of_row / kPanelRows + 1) * kPanelRows;
  at::parallel_for(0, out.size(0), grain,
                   [&](std::int64_t begin, std::int64_t end) { multiply_panels(product, begin, end); });
}

}  // namespace twinbench
