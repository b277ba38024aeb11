// The forward pass of sem.selective_scan over a tile of steps of one group: projection, scan and projection of sixteen
// states at a time, so that what passes between them stays in the first-level cache and the states in registers.
//
// A step and group of 16 channels and 128 states takes, in vectors of 16: 4 * 16 * 8 FMA a projection written plainly,
// 3 * 16 * 8 as below; its decays and states 8 * 27 multiplications among 8 * 42 operations. Predicted for a core with
// one such FMA a cycle (Zen 4): 768 + 216 cycles, where the plain form, whose sine and exponential took two operations
// for an FMA, took 1,152 + 480; so 2.2 ms a layer of 1,024 steps and 16 groups on two cores at 3.7 GHz.
#pragma once

#include <cstdint>

#include "kernels/sem/selective_scan/math.h"
#include "optimized/sem/selective_scan/tile.h"

namespace twinbench::sem::selective_scan {

// One factor of a product of complex numbers by three real ones instead of four:
//   first = a (x + y), second = (b - a) x, third = (a + b) y;   (a + ib)(x + iy) = first - third + i (first + second)
// so a matrix a + ib is kept as a, b - a and a + b, and a row of x + iy with its x + y.
template <class Real>
struct Triple {
  Real *real = nullptr, *imaginary = nullptr, *sum = nullptr;
  Triple from(std::int64_t at) const { return {real + at, imaginary + at, sum + at}; }
};
constexpr std::int64_t kTriple = 3 * kLanes;  // of a row of a packed matrix: [3][kLanes]

// sums[row][3][kLanes] += rows[row][k] * matrix[k][3][kLanes], for kRows rows.
template <int kRows, class Real>
inline __attribute__((always_inline)) void triple_block(std::int64_t inner, Triple<Real> rows, std::int64_t row_stride,
                                                        const Real* __restrict matrix, Real* __restrict sums) {
  Real first[kRows][kLanes], second[kRows][kLanes], third[kRows][kLanes];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 1
    for (int lane = 0; lane < kLanes; ++lane) {
      first[r][lane] = sums[r * kTriple + lane];
      second[r][lane] = sums[r * kTriple + kLanes + lane];
      third[r][lane] = sums[r * kTriple + 2 * kLanes + lane];
    }
  }
  for (std::int64_t k = 0; k < inner; ++k, matrix += kTriple) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Real x = rows.real[r * row_stride + k], y = rows.imaginary[r * row_stride + k],
                 both = rows.sum[r * row_stride + k];
#pragma GCC unroll 1
      for (int lane = 0; lane < kLanes; ++lane) {
        first[r][lane] = fused(both, matrix[lane], first[r][lane]);
        second[r][lane] = fused(x, matrix[kLanes + lane], second[r][lane]);
        third[r][lane] = fused(y, matrix[2 * kLanes + lane], third[r][lane]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 1
    for (int lane = 0; lane < kLanes; ++lane) {
      sums[r * kTriple + lane] = first[r][lane];
      sums[r * kTriple + kLanes + lane] = second[r][lane];
      sums[r * kTriple + 2 * kLanes + lane] = third[r][lane];
    }
  }
}

// scaled = length * row, both parts and their sum.
template <class Real>
TWINBENCH_CPU_CLONES static void scale_row(std::int64_t count, Real length, Planes<Real> row, Triple<Real> scaled) {
  for (std::int64_t k = 0; k < count; ++k) {
    const Real real = length * row.real[k], imaginary = length * row.imaginary[k];
    scaled.real[k] = real, scaled.imaginary[k] = imaginary, scaled.sum[k] = real + imaginary;
  }
}

// The numbers that sums [3][kLanes] of a triple stand for.
template <class Real>
void whole_numbers(std::int64_t count, const Real* sums, Planes<Real> to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to.real[i] = sums[i] - sums[2 * kLanes + i];
    to.imaginary[i] = sums[i] + sums[kLanes + i];
  }
}

// kTile rows of sums.
template <class Real>
inline __attribute__((always_inline)) void triple_tile(std::int64_t inner, Triple<Real> rows, std::int64_t row_stride,
                                                       const Real* matrix, Real* sums) {
  for (std::int64_t row = 0; row < kTile; row += 4)
    triple_block<4>(inner, rows.from(row * row_stride), row_stride, matrix, sums + row * kTriple);
}

// Sixteen states: parameters in the units of scaled_decay, the state before the tile and then after it, the largest
// squared modulus so far.
template <class Real>
struct StateBlock {
  const Real *shrinking, *half_turns;
  Real *real, *imaginary, *most;
};

// projected: sums of a triple, from inputs already times the steps' lengths. kept[kTile][kLanes].
template <class Real>
inline __attribute__((always_inline)) void scan_block(std::int64_t count, const Real* steps,
                                                      const Real* __restrict projected, StateBlock<Real> block,
                                                      Triple<Real> kept) {
  Real state_real[kLanes], state_imaginary[kLanes], most[kLanes];
#pragma GCC unroll 1
  for (int n = 0; n < kLanes; ++n)
    state_real[n] = block.real[n], state_imaginary[n] = block.imaginary[n], most[n] = block.most[n];
  Real* __restrict real = kept.real, * __restrict imaginary = kept.imaginary, * __restrict sum = kept.sum;
  for (std::int64_t t = 0; t < count; ++t) {
    const Real length = steps[t], turn = steps[kTile + t];
#pragma GCC unroll 1
    for (int n = 0; n < kLanes; ++n) {
      const Number<Real> decay = scaled_decay(length, block.shrinking[n], turn, block.half_turns[n]);
      const Real first = projected[t * kTriple + n];
      const Number<Real> added{first - projected[t * kTriple + 2 * kLanes + n],
                               first + projected[t * kTriple + kLanes + n]};
      const Number<Real> state = add_product(decay, {state_real[n], state_imaginary[n]}, added);
      state_real[n] = state.real, state_imaginary[n] = state.imaginary;
      real[t * kLanes + n] = state.real, imaginary[t * kLanes + n] = state.imaginary;
      sum[t * kLanes + n] = state.real + state.imaginary;
      most[n] = larger_square(fused(state.real, state.real, state.imaginary * state.imaginary), most[n]);
    }
  }
#pragma GCC unroll 1
  for (int n = 0; n < kLanes; ++n)
    block.real[n] = state_real[n], block.imaginary[n] = state_imaginary[n], block.most[n] = most[n];
}

// What forward_tile reads and writes.
template <class Real>
struct ForwardTile {
  std::int64_t count, width, lanes, columns;  // steps; channels; states and channels in whole vectors
  const Real* steps;                          // [2][kTile]: lengths and turns
  Triple<Real> input;                         // [kTile][width], times the steps' lengths
  const Real* into;                           // [lanes / kLanes][width][3][kLanes]
  const Real* out_of;                         // [columns / kLanes][lanes][3][kLanes]; null: no output is wanted
  StateBlock<Real> states;                    // [lanes] each
  Real* projected;                            // [kTile][3][kLanes]
  Triple<Real> kept;                          // [kTile][kLanes]
  Real* out;                                  // [columns / kLanes][kTile][3][kLanes]
};

template <class Real>
TWINBENCH_CPU_CLONES static void forward_tile(ForwardTile<Real> tile) {
  const std::int64_t sums = kTile * kTriple;
  if (tile.out_of != nullptr)
    for (std::int64_t i = 0; i < tile.columns / kLanes * sums; ++i) tile.out[i] = 0;
  for (std::int64_t n = 0; n < tile.lanes; n += kLanes) {
    for (std::int64_t i = 0; i < sums; ++i) tile.projected[i] = 0;
    triple_tile<Real>(tile.width, tile.input, tile.width, tile.into + n / kLanes * tile.width * kTriple,
                      tile.projected);
    const StateBlock<Real>& all = tile.states;
    scan_block<Real>(tile.count, tile.steps, tile.projected,
                     {all.shrinking + n, all.half_turns + n, all.real + n, all.imaginary + n, all.most + n}, tile.kept);
    if (tile.out_of == nullptr) continue;
    for (std::int64_t block = 0; block < tile.columns / kLanes; ++block)
      triple_tile<Real>(kLanes, tile.kept, kLanes, tile.out_of + (block * tile.lanes + n) * kTriple,
                        tile.out + block * sums);
  }
}

}  // namespace twinbench::sem::selective_scan
