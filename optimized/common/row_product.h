// Matrix product of a few rows with a large row-major weight on the CPU: streams the weight once, whatever the rows.
//
// Faster than the library's GEMM for up to some 32 rows (it is bound by reading the weight), and the order in which one
// output is summed depends on `inner` alone: a row gives the same bits alone and in any batch.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "kernels/common/float_bits.h"
#include "src/common/cpu_clones.h"

namespace twinbench {

// kRows x kColumns dot products, each in kProductLanes interleaved partial sums that stay in registers.
constexpr int kProductLanes = 16;

template <int kRows, int kColumns, class Real>
inline __attribute__((always_inline)) void dot_products(const Real* __restrict x, const Real* __restrict weight,
                                                        std::int64_t inner, std::int64_t columns,
                                                        Real* __restrict out) {
  Real sum[kRows][kColumns][kProductLanes] = {};
  std::int64_t k = 0;
  for (; k + kProductLanes <= inner; k += kProductLanes) {
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
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) {
      for (int lane = 0; k + lane < inner; ++lane)
        sum[row][column][lane] += x[row * inner + k + lane] * weight[column * inner + k + lane];
      Real total = 0;
      for (int lane = 0; lane < kProductLanes; ++lane) total += sum[row][column][lane];
      out[row * columns + column] = total;
    }
}

template <int kColumns, class Real>
inline __attribute__((always_inline)) void dot_product_rows(std::int64_t rows, const Real* x, const Real* weight,
                                                            std::int64_t inner, std::int64_t columns, Real* out) {
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4)
    dot_products<4, kColumns>(x + row * inner, weight, inner, columns, out + row * columns);
  for (; row < rows; ++row) dot_products<1, kColumns>(x + row * inner, weight, inner, columns, out + row * columns);
}

// out[row][c] = sum_k x[row][k] * weight[c][k] for columns c in [begin, end).
// x [rows, inner], weight [columns, inner], out [rows, columns], contiguous.
template <class Real>
TWINBENCH_CPU_CLONES static void multiply_transposed(std::int64_t rows, const Real* x, const Real* weight,
                                                     std::int64_t inner, std::int64_t columns, std::int64_t begin,
                                                     std::int64_t end, Real* out) {
  std::int64_t c = begin;
  for (; c + 4 <= end; c += 4) dot_product_rows<4>(rows, x, weight + c * inner, inner, columns, out + c);
  for (; c < end; ++c) dot_product_rows<1>(rows, x, weight + c * inner, inner, columns, out + c);
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
