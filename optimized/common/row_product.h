// Matrix product of a few rows with a large row-major weight on the CPU: streams the weight once, whatever the rows.
//
// Faster than the library's GEMM for up to some 32 rows (it is bound by reading the weight), and the order in which one
// output is summed depends on `inner` alone: a row gives the same bits alone and in any batch.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/common/float_bits.h"
#include "src/common/cpu_clones.h"

namespace twinbench {

// Partial sums of one dot product, of which each stays in a register.
constexpr int kProductLanes = 16, kProductRows = 4, kProductColumns = 4;
constexpr int kHalfLanes = kProductLanes / 2;

// A sum of lanes is that of halves of halves: lanes l and l + 8, then l + 4, l + 2, l + 1.
template <class Real>
inline __attribute__((always_inline)) Real sum_of_lanes(const Real* lanes) {
  Real half[kProductLanes];
  std::copy_n(lanes, kProductLanes, half);
  for (int width = kProductLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) half[lane] += half[lane + width];
  return half[0];
}

// Of two vectors with sums in blocks of 2 * kWidth lanes: their blocks' halves added, one vector's beside the other's.
template <int kWidth, class Lanes, int... lane>
inline __attribute__((always_inline)) void add_halves(const Lanes& a, const Lanes& b, Lanes& sums,
                                                      std::integer_sequence<int, lane...>) {
  constexpr auto low = [](int i) {
    return i / kHalfLanes * kProductLanes + i % kHalfLanes / kWidth * 2 * kWidth + i % kWidth;
  };
  sums = __builtin_shufflevector(a, b, low(lane)...) + __builtin_shufflevector(a, b, (low(lane) + kWidth)...);
}
template <int kWidth, class Lanes>
inline __attribute__((always_inline)) void add_all_halves(Lanes* vectors) {
#pragma GCC unroll 8
  for (int i = 0; i < kWidth; ++i)
    add_halves<kWidth>(vectors[2 * i], vectors[2 * i + 1], vectors[i],
                       std::make_integer_sequence<int, kProductLanes>());
}

// Of as many products as there are lanes, each summed as sum_of_lanes() does: by 15 additions of vectors for them all.
template <class Real>
inline __attribute__((always_inline)) void sums_of_lanes(
    const Real (&lanes)[kProductRows][kProductColumns][kProductLanes], std::int64_t columns, Real* __restrict out) {
  static_assert(kProductRows * kProductColumns == kProductLanes);
  typedef Real Lanes __attribute__((vector_size(kProductLanes * sizeof(Real))));
  Lanes vectors[kProductLanes];
  std::memcpy(vectors, lanes, sizeof vectors);
  add_all_halves<kHalfLanes>(vectors), add_all_halves<4>(vectors), add_all_halves<2>(vectors),
      add_all_halves<1>(vectors);
  for (int row = 0; row < kProductRows; ++row)
    for (int column = 0; column < kProductColumns; ++column)
      out[row * columns + column] = vectors[0][row * kProductColumns + column];
}

// kRows x kColumns dot products. `ahead`, [inner], is read soon: the memory fetches it while these are summed.
template <int kRows, int kColumns, class Real>
inline __attribute__((always_inline)) void dot_products(const Real* __restrict x, const Real* __restrict weight,
                                                        std::int64_t inner, std::int64_t columns,
                                                        const Real* __restrict ahead, Real* __restrict out) {
  Real sum[kRows][kColumns][kProductLanes] = {};
  std::int64_t k = 0;
  for (; k + kProductLanes <= inner; k += kProductLanes) {
    __builtin_prefetch(ahead + k);
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
      for (int column = 0; column < kColumns; ++column) {
#pragma GCC unroll 1
        for (int lane = 0; lane < kProductLanes; ++lane)
          sum[row][column][lane] = kernels::multiply_add(x[row * inner + k + lane], weight[column * inner + k + lane],
                                                         sum[row][column][lane]);
      }
    }
  }
  if (k < inner)
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < kColumns; ++column)
        for (int lane = 0; k + lane < inner; ++lane)
          sum[row][column][lane] += x[row * inner + k + lane] * weight[column * inner + k + lane];
  if constexpr (kRows == kProductRows && kColumns == kProductColumns) return sums_of_lanes(sum, columns, out);
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) out[row * columns + column] = sum_of_lanes(sum[row][column]);
}

// `next`: the block of weights that comes after this one (itself, where it is the last). It is fetched while this one
// is used, a row of it with each group of rows of x.
template <int kColumns, class Real>
inline __attribute__((always_inline)) void dot_product_rows(std::int64_t rows, const Real* x, const Real* weight,
                                                            const Real* next, std::int64_t inner, std::int64_t columns,
                                                            Real* out) {
  const auto ahead = [=](std::int64_t group) { return next + std::min<std::int64_t>(group, kColumns - 1) * inner; };
  std::int64_t row = 0;
  for (; row + kProductRows <= rows; row += kProductRows)
    dot_products<kProductRows, kColumns>(x + row * inner, weight, inner, columns, ahead(row / kProductRows),
                                         out + row * columns);
  for (; row < rows; ++row)
    dot_products<1, kColumns>(x + row * inner, weight, inner, columns, ahead(row / kProductRows), out + row * columns);
}

// out[row][c] = sum_k x[row][k] * weight[c][k] for columns c in [begin, end).
// x [rows, inner], weight [columns, inner], out [rows, columns], contiguous.
template <class Real>
TWINBENCH_CPU_CLONES static void multiply_transposed(std::int64_t rows, const Real* x, const Real* weight,
                                                     std::int64_t inner, std::int64_t columns, std::int64_t begin,
                                                     std::int64_t end, Real* out) {
  std::int64_t c = begin;
  for (; c + kProductColumns <= end; c += kProductColumns) {
    const bool last = c + 2 * kProductColumns > end;
    const Real* const block = weight + c * inner;
    dot_product_rows<kProductColumns>(rows, x, block, last ? block : block + kProductColumns * inner, inner, columns,
                                      out + c);
  }
  for (; c < end; ++c) dot_product_rows<1>(rows, x, weight + c * inner, weight + c * inner, inner, columns, out + c);
}

// out = x * weight^T, the weight's rows shared among the threads in blocks of four.
template <class Real>
void multiply_rows_transposed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& out) {
  constexpr std::int64_t kWork = 4 << 20;  // multiply-adds that pay for waking a thread
  const std::int64_t rows = x.size(0), inner = x.size(1), columns = weight.size(0);
  const std::int64_t grain = std::max<std::int64_t>(1, kWork / (4 * rows * inner));
  at::parallel_for(0, (columns + 3) / 4, grain, [&](std::int64_t begin, std::int64_t end) {
    multiply_transposed(rows, x.const_data_ptr<Real>(), weight.const_data_ptr<Real>(), inner, columns, 4 * begin,
                        std::min(columns, 4 * end), out.mutable_data_ptr<Real>());
  });
}

}  // namespace twinbench
