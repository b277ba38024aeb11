// Matrix product on the CPU by loops of our own: columns in panels that are packed to lie in cache.
//
// Every element is summed over the inner axis in ascending order, in parts of kPanelDepth, whatever the other sizes
// are: a row gives the same bits alone and in any batch, for any number of threads.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "kernels/common/float_bits.h"
#include "optimized/common/tensors.h"
#include "src/common/cpu_clones.h"

namespace twinbench {

constexpr int kPanelLanes = 16;
constexpr int kPanelVectors = 3;           // columns of a panel, in vectors of kPanelLanes
constexpr int kPanelRows = 8;              // whose sums stay in registers: 24 of AVX-512's 32
constexpr std::int64_t kPanelDepth = 128;  // of the inner axis at once: a panel of 24 KiB, and a short sum

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
};

// panel [depth][kVectors * kPanelLanes], of which `columns` are there: all of them where kWhole. Not `fresh`: added to
// what `out` holds.
template <int kRows, int kVectors, bool kWhole, class Real>
inline __attribute__((always_inline)) void panel_rows(const PanelProduct<Real>& p, std::int64_t depth,
                                                      const Real* __restrict x, const Real* __restrict panel,
                                                      Real* __restrict out, std::int64_t columns, bool fresh) {
  Real sum[kRows][kVectors][kPanelLanes] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Real factor = x[r * p.x_row + k * p.x_inner];
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 1
        for (int lane = 0; lane < kPanelLanes; ++lane)
          sum[r][v][lane] =
              kernels::multiply_add(factor, panel[(k * kVectors + v) * kPanelLanes + lane], sum[r][v][lane]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    Real* __restrict to = out + r * p.out_row;
    if constexpr (kWhole) {
      for (int v = 0; v < kVectors && !fresh; ++v)
        for (int lane = 0; lane < kPanelLanes; ++lane) sum[r][v][lane] += to[v * kPanelLanes + lane];
      for (int v = 0; v < kVectors; ++v)
        for (int lane = 0; lane < kPanelLanes; ++lane) to[v * kPanelLanes + lane] = sum[r][v][lane];
    } else {
      for (std::int64_t c = 0; c < columns; ++c) {
        const Real here = sum[r][c / kPanelLanes][c % kPanelLanes];
        to[c] = fresh ? here : to[c] + here;
      }
    }
  }
}

// Columns first ... first + columns of rows [begin, end); `panel` is scratch.
template <int kVectors, class Real>
inline __attribute__((always_inline)) void panel_of_columns(const PanelProduct<Real>& p, std::int64_t begin,
                                                            std::int64_t end, std::int64_t first, std::int64_t columns,
                                                            Real* __restrict panel) {
  constexpr std::int64_t kColumns = kVectors * kPanelLanes;
  for (std::int64_t k = 0; k < std::max<std::int64_t>(1, p.inner); k += kPanelDepth) {
    const std::int64_t depth = std::min(kPanelDepth, p.inner - k);
    for (std::int64_t j = 0; j < depth; ++j) {
      const Real* __restrict row = p.w + (k + j) * p.w_inner + first;
      std::copy_n(row, columns, panel + j * kColumns);
      std::fill(panel + j * kColumns + columns, panel + (j + 1) * kColumns, Real(0));
    }
    const bool fresh = k == 0 && !p.add;
    const Real* x = p.x + begin * p.x_row + k * p.x_inner;
    Real* out = p.out + begin * p.out_row + first;
    std::int64_t left = end - begin;
    for (; left >= kPanelRows; left -= kPanelRows, x += kPanelRows * p.x_row, out += kPanelRows * p.out_row) {
      if (columns == kColumns)
        panel_rows<kPanelRows, kVectors, true>(p, depth, x, panel, out, columns, fresh);
      else
        panel_rows<kPanelRows, kVectors, false>(p, depth, x, panel, out, columns, fresh);
    }
    for (; left > 0; --left, x += p.x_row, out += p.out_row)
      panel_rows<1, kVectors, false>(p, depth, x, panel, out, columns, fresh);
  }
}

template <class Real>
inline __attribute__((always_inline)) void panel_products(const PanelProduct<Real>& p, std::int64_t begin,
                                                          std::int64_t end) {
  alignas(64) Real panel[kPanelDepth * kPanelVectors * kPanelLanes];
  for (std::int64_t first = 0; first < p.columns; first += kPanelVectors * kPanelLanes) {
    const std::int64_t columns = std::min<std::int64_t>(kPanelVectors * kPanelLanes, p.columns - first);
    if (columns > 2 * kPanelLanes)
      panel_of_columns<3>(p, begin, end, first, columns, panel);
    else if (columns > kPanelLanes)
      panel_of_columns<2>(p, begin, end, first, columns, panel);
    else
      panel_of_columns<1>(p, begin, end, first, columns, panel);
  }
}

TWINBENCH_CPU_CLONES static void multiply_panels(const PanelProduct<float>& p, std::int64_t begin, std::int64_t end) {
  panel_products(p, begin, end);
}
// fp64 proves gradients and is never timed: one form for every processor.
static void multiply_panels(const PanelProduct<double>& p, std::int64_t begin, std::int64_t end) {
  panel_products(p, begin, end);
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
