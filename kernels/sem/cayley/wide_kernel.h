// The kernels of sem.cayley for rows that do not fit into a block's shared memory: the rotation alone, before a product
// of the library, and the way back after one.
#pragma once

#include "kernels/common/simt_handover.h"
#include "kernels/sem/cayley/product_kernel.h"

namespace twinbench::sem::cayley {

// A thread every kThreads-th column of a row.
template <class Block>
TWINBENCH_DEVICE float row_floor(Block& block, const float* re, const float* im, int dim) {
  float sum = 0.0f;
  for (int i = simt::thread_rank(block); i < dim; i += kThreads) sum += re[i] * re[i] + im[i] * im[i];
  return simt::block_sum(block, sum) / static_cast<float>(dim) + kIntensityFloor<float>;
}

struct TurnedNumber {
  Number<float> psi, r;
  kernels::SineCosine<float> by;
  float intensity;
};
TWINBENCH_DEVICE TurnedNumber turned_number(float re, float im, float alpha, float floor) {
  TurnedNumber number;
  number.psi = {re, im};
  number.intensity = intensity_of<float>(number.psi, floor);
  number.by = kernels::sine_cosine(alpha * number.intensity);
  number.r = turned<float>(number.psi, number.by);
  return number;
}

// Grid: a block a row. A row's product is not finite where the turned row is not, or the matrix: U is unitary, so
// nothing overflows.
struct WideTurn {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const WideForwardArguments& a) const {
    const std::int64_t row = block.index().x;
    const float *re = a.psi + row * a.dim, *im = re + a.rows * a.dim;
    const float floor = row_floor(block, re, im, a.dim);
    float* const to = a.turned + row * 2 * a.dim;
    float bad = 0.0f;
    for (int i = simt::thread_rank(block); i < a.dim; i += kThreads) {
      const TurnedNumber number = turned_number(re[i], im[i], a.alpha[i], floor);
      to[i] = number.r.re;
      to[a.dim + i] = number.r.im;
      const bool finite = kernels::absolute(number.r.re) < INFINITY && kernels::absolute(number.r.im) < INFINITY;
      bad = finite ? bad : 1.0f;
    }
    bad = simt::block_max(block, bad, 0.0f);
    const bool leads = simt::thread_rank(block) == 0;
    if (leads && (bad > 0.0f || !(kernels::absolute(a.matrix[0]) < INFINITY))) simt::atomic_add(block, a.handover, 1u);
    if (simt::is_last_block(block, a.handover + 1, block.grid().x) && leads) {
      *a.nonfinite_rows = static_cast<std::int32_t>(a.handover[0]);
      a.handover[0] = 0;
    }
  }
};

// Grid: backward_blocks, rows_of(kSplit) rows one after the other. Dynamic shared memory: [dim], alpha's terms of the
// block's rows; in registers a thread's columns would not all fit (40 bytes were spilled on sm_120).
struct WideBack {
  static constexpr int kMaxThreads = kThreads;
  static constexpr int kRows = rows_of(Operand::kSplit);
  static std::int64_t documented_shared_bytes() { return wide_shared_bytes(1024); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const WideBackwardArguments& a) const {
    auto sums = simt::dynamic_shared<float>(block);  // a thread's own columns: no barrier
    const std::int64_t first = std::int64_t{block.index().x} * kRows;
    for (int i = simt::thread_rank(block); i < a.dim; i += kThreads) sums[i] = 0.0f;
    TWINBENCH_ROLLED
    for (std::int64_t row = first; row < a.rows && row < first + kRows; ++row) turn_back(block, a, row, sums);
    for (int i = simt::thread_rank(block); i < a.dim; i += kThreads)
      a.alpha_terms[std::int64_t{block.index().x} * a.dim + i] = sums[i];
  }

 private:
  // conj(U) g, from g's planes times both parts of U.
  static TWINBENCH_DEVICE Number<float> gradient_at(const WideBackwardArguments& a, std::int64_t row, int i) {
    const float *of_re = a.products + row * 2 * a.dim, *of_im = of_re + a.rows * 2 * a.dim;
    return {of_re[i] + of_im[a.dim + i], of_im[i] - of_re[a.dim + i]};
  }

  template <class Block, class Sums>
  static TWINBENCH_DEVICE void turn_back(Block& block, const WideBackwardArguments& a, std::int64_t row, Sums sums) {
    const std::int64_t re = row * a.dim, im = (a.rows + row) * a.dim;
    const float floor = row_floor(block, a.psi + re, a.psi + im, a.dim);
    float mean = 0.0f;
    TWINBENCH_ROLLED
    for (int i = simt::thread_rank(block); i < a.dim; i += kThreads) {
      // All loads before the first store.
      const Number<float> gradient = gradient_at(a, row, i), x = {a.x[re + i], a.x[im + i]},
                          given = {a.grad_x[re + i], a.grad_x[im + i]};
      const float alpha = a.alpha[i];
      const TurnedNumber number = turned_number(a.psi[re + i], a.psi[im + i], alpha, floor);
      const float weighted = phase_gradient<float>(gradient, number.r) * number.intensity, before = sums[i];
      sums[i] = before + weighted;
      mean += alpha * weighted;
      a.z[re + i] = 0.5f * (given.re + gradient.re);
      a.z[im + i] = 0.5f * (given.im + gradient.im);
      a.y[re + i] = x.im + number.r.im;
      a.y[im + i] = -(x.re + number.r.re);
    }
    mean = simt::block_sum(block, mean) / static_cast<float>(a.dim);
    TWINBENCH_ROLLED
    for (int i = simt::thread_rank(block); i < a.dim; i += kThreads) {
      const float alpha = a.alpha[i];
      const TurnedNumber number = turned_number(a.psi[re + i], a.psi[im + i], alpha, floor);
      const Number<float> gradient = gradient_at(a, row, i);
      const auto back = turned_back<float>(gradient, number.by, number.psi,
                                           alpha * phase_gradient<float>(gradient, number.r), mean, floor);
      a.grad_psi[re + i] = back.re;
      a.grad_psi[im + i] = back.im;
    }
  }
};

}  // namespace twinbench::sem::cayley
