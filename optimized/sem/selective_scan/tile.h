// Hot loops of sem.selective_scan on the CPU: a tile of steps of one group, states or channels side by side in vectors.
//
// Every array of a tile is two planes, real parts and imaginary ones, of rows [step][lane]; lanes are padded with zeros
// to whole vectors. A result's bits depend on its own group alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/sem/selective_scan/math.h"
#include "src/common/cpu_clones.h"

namespace twinbench::sem::selective_scan {

constexpr std::int64_t kLanes = 16;  // of a vector
constexpr std::int64_t kTile = 16;   // steps

inline std::int64_t padded(std::int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

template <class Real>
struct Planes {
  Real *real = nullptr, *imaginary = nullptr;
  Planes from(std::int64_t at) const { return {real + at, imaginary + at}; }
};

// The left factor of a product: element (row, k) at row * row_stride + k * inner_stride; its imaginary parts times
// `sign`.
template <class Real>
struct Rows {
  Planes<Real> of;
  std::int64_t row_stride = 0, inner_stride = 0;
  Real sign = 1;
};

// out[row][lane] = or += sum over k of rows(row, k) * matrix[k][lane], for kRows rows and kLanes lanes in registers.
template <int kRows, class Real>
inline __attribute__((always_inline)) void product_block(std::int64_t inner, const Rows<Real>& rows,
                                                         Planes<Real> matrix, std::int64_t matrix_stride,
                                                         Planes<Real> out, std::int64_t out_stride, bool add) {
  Real real[kRows][kLanes], imaginary[kRows][kLanes];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 1
    for (int lane = 0; lane < kLanes; ++lane) {
      real[r][lane] = Real(0);
      imaginary[r][lane] = Real(0);
    }
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    const Real *const x = matrix.real + k * matrix_stride, *const y = matrix.imaginary + k * matrix_stride;
    Real turned_real[kLanes], turned_imaginary[kLanes];  // times i, and the rows' sign
#pragma GCC unroll 1
    for (int lane = 0; lane < kLanes; ++lane) {
      turned_real[lane] = -rows.sign * y[lane];
      turned_imaginary[lane] = rows.sign * x[lane];
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t at = r * rows.row_stride + k * rows.inner_stride;
      const Real a = rows.of.real[at], b = rows.of.imaginary[at];
#pragma GCC unroll 1
      for (int lane = 0; lane < kLanes; ++lane) {
        real[r][lane] = fused(b, turned_real[lane], fused(a, x[lane], real[r][lane]));
        imaginary[r][lane] = fused(b, turned_imaginary[lane], fused(a, y[lane], imaginary[r][lane]));
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 1
    for (int lane = 0; lane < kLanes; ++lane) {
      out.real[r * out_stride + lane] = (add ? out.real[r * out_stride + lane] : Real(0)) + real[r][lane];
      out.imaginary[r * out_stride + lane] =
          (add ? out.imaginary[r * out_stride + lane] : Real(0)) + imaginary[r][lane];
    }
  }
}

constexpr std::int64_t kTerms = 256;  // summed by themselves: none is rounded to the digits of thousands

// `lanes` is a multiple of kLanes, and the stride of the matrix.
template <class Real>
TWINBENCH_CPU_CLONES static void multiply_tile(std::int64_t count, std::int64_t inner, std::int64_t lanes,
                                               Rows<Real> rows, Planes<Real> matrix, Planes<Real> out,
                                               std::int64_t out_stride, bool add) {
  for (std::int64_t first = 0; first < std::max<std::int64_t>(inner, 1); first += kTerms)
    for (std::int64_t lane = 0; lane < lanes; lane += kLanes) {
      const std::int64_t terms = std::min(kTerms, inner - first);
      const Planes<Real> columns = matrix.from(first * lanes + lane);
      Rows<Real> of = rows;
      of.of = of.of.from(first * rows.inner_stride);
      const bool more = add || first > 0;
      std::int64_t row = 0;
      for (; row + 4 <= count; row += 4, of.of = of.of.from(4 * rows.row_stride))
        product_block<4>(terms, of, columns, lanes, out.from(row * out_stride + lane), out_stride, more);
      for (; row < count; ++row, of.of = of.of.from(rows.row_stride))
        product_block<1>(terms, of, columns, lanes, out.from(row * out_stride + lane), out_stride, more);
    }
}

// Lengths and turns of the steps side by side: exp of the logits as they are, and clamped. parts [inner][kTile].
template <class Real>
TWINBENCH_CPU_CLONES static void step_sizes(std::int64_t inner, const Real* __restrict parts,
                                            const Real* __restrict weight, Real bias, Real* __restrict exponential,
                                            Real* __restrict step) {
  Real logit[kTile] = {};
  for (std::int64_t first = 0; first < inner; first += kTerms) {
    Real sum[kTile] = {};
    for (std::int64_t k = first; k < std::min(inner, first + kTerms); ++k)
      for (std::int64_t t = 0; t < kTile; ++t) sum[t] = fused(weight[k], parts[k * kTile + t], sum[t]);
    for (std::int64_t t = 0; t < kTile; ++t) logit[t] += sum[t];
  }
  // The bias last: the terms are small beside it, and a sum from it on would round each to its digits.
  for (std::int64_t t = 0; t < kTile; ++t) exponential[t] = kernels::exp(logit[t] + bias);
  for (std::int64_t t = 0; t < kTile; ++t) step[t] = clamped_step(exponential[t]);
}

// What a step of the scan reads and writes beside the states themselves.
template <class Real>
struct Step {
  Real length, turn;
  const Real *rate, *phase;            // [lanes]
  const Real *shrinking, *half_turns;  // the same in the units of decay_of
};

// From states before to states after, keeping the decays.
template <class Real>
TWINBENCH_CPU_CLONES static void scan_step_kept(std::int64_t lanes, Step<Real> step,
                                                const Real* __restrict projected_real,
                                                const Real* __restrict projected_imaginary, Real* __restrict state_real,
                                                Real* __restrict state_imaginary, Real* __restrict decay_real,
                                                Real* __restrict decay_imaginary, const Real* __restrict before_real,
                                                const Real* __restrict before_imaginary) {
  for (std::int64_t n = 0; n < lanes; ++n) {
    const Number<Real> decay = decay_of(step.length, step.shrinking[n], step.turn, step.half_turns[n]);
    const Number<Real> state = next_state(decay, {before_real[n], before_imaginary[n]},
                                          {projected_real[n], projected_imaginary[n]}, step.length);
    decay_real[n] = decay.real, decay_imaginary[n] = decay.imaginary;
    state_real[n] = state.real, state_imaginary[n] = state.imaginary;
  }
}

// One step backwards. carried: the gradient that later steps pass on, then that for the step before. projected becomes
// the gradient of itself. Returns the gradients of the step's length and turn.
template <class Real>
struct StepSums {
  Real of_length, of_turn;
};
template <class Real>
TWINBENCH_CPU_CLONES static StepSums<Real> step_back(
    std::int64_t lanes, Step<Real> step, const Real* __restrict of_output_real,
    const Real* __restrict of_output_imaginary, const Real* __restrict decay_real,
    const Real* __restrict decay_imaginary, const Real* __restrict before_real, const Real* __restrict before_imaginary,
    Real* __restrict projected_real, Real* __restrict projected_imaginary, Real* __restrict carried_real,
    Real* __restrict carried_imaginary, Real* __restrict of_rate, Real* __restrict of_phase) {
  Real lengths[kLanes] = {}, turns[kLanes] = {};
  for (std::int64_t first = 0; first < lanes; first += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const std::int64_t n = first + lane;
      const Number<Real> of_state{of_output_real[n] + carried_real[n], of_output_imaginary[n] + carried_imaginary[n]};
      const StepGradient<Real> gradient =
          step_gradient(of_state, {decay_real[n], decay_imaginary[n]}, {before_real[n], before_imaginary[n]},
                        {projected_real[n], projected_imaginary[n]}, step.rate[n], step.phase[n]);
      carried_real[n] = gradient.carried.real, carried_imaginary[n] = gradient.carried.imaginary;
      projected_real[n] = step.length * of_state.real, projected_imaginary[n] = step.length * of_state.imaginary;
      of_rate[n] = fused(-step.length, gradient.shrinking, of_rate[n]);
      of_phase[n] = fused(step.turn, gradient.turning, of_phase[n]);
      lengths[lane] += gradient.of_length;
      turns[lane] += gradient.of_turn;
    }
  StepSums<Real> sums{0, 0};
  for (std::int64_t lane = 0; lane < kLanes; ++lane) sums.of_length += lengths[lane], sums.of_turn += turns[lane];
  return sums;
}

// weight[k] += scale * row[k].
template <class Real>
TWINBENCH_CPU_CLONES static void add_scaled(std::int64_t count, Real scale, const Real* __restrict row,
                                            Real* __restrict sum) {
  for (std::int64_t k = 0; k < count; ++k) sum[k] = fused(scale, row[k], sum[k]);
}

}  // namespace twinbench::sem::selective_scan
