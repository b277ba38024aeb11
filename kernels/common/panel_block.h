// Some rows times one packed panel of columns on the CPU: the innermost loops of its products, by what it has.
//
// Every element is summed over the panel's depth in ascending order from zero and then added to what was there: a row's
// bits do not depend on its neighbours. They do on the processor: AVX-512 has multiply-adds of one rounding, and the
// products of bf16 pairs (AVX512_BF16), which take numbers below 1.2e-38 for zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/common/float_bits.h"
#include "src/common/cpu_clones.h"

// Sums in 24 of AVX-512's 32 registers; elsewhere the compiler's own vectors.
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__CUDACC__) && !defined(TWINBENCH_NO_CPU_CLONES)
#define TWINBENCH_WIDE_PANELS 1
#include <immintrin.h>
#endif

namespace twinbench::kernels {

constexpr int kPanelLanes = 16;
constexpr int kPanelVectors = 3;  // columns of a panel, in vectors of kPanelLanes
constexpr int kPanelColumns = kPanelVectors * kPanelLanes;
constexpr int kPanelRows = 8;              // whose sums stay in registers
constexpr std::int64_t kPanelDepth = 128;  // of the inner axis at once: a panel of 24 KiB, and a short sum

// kPairs: every 32 bits of rows and panel hold two bf16 values, neighbours on the inner axis; needs AVX512_BF16.
enum class PanelWay { kLoops, kWide, kPairs };

// `bf16`: all operands hold values that bf16 can hold. Intel's processors multiply pairs at half the rate of fp32's
// multiply-adds (87 against 178 GFLOP/s of a core, Emerald Rapids): there rounded numbers are multiplied as fp32.
inline PanelWay panel_way([[maybe_unused]] bool bf16) {
#if defined(TWINBENCH_WIDE_PANELS)
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  const bool pairs = __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel");
  if (wide) return bf16 && pairs ? PanelWay::kPairs : PanelWay::kWide;
#endif
  return PanelWay::kLoops;
}

// out[row][c] (+)= sum_k x[row * x_row + k] * panel[k][c]; panel [depth][vectors * kPanelLanes].
template <class Real>
struct PanelBlock {
  std::int64_t rows = 0, depth = 0;  // depth in pairs where those are multiplied
  const Real* x = nullptr;
  std::int64_t x_row = 0;  // 0: packed, [blocks of kPanelRows][depth][kPanelRows]
  const Real* panel = nullptr;
  std::int64_t columns = 0;  // of the panel's, which are there
  Real* out = nullptr;
  std::int64_t out_row = 0;
  bool fresh = false;           // `out` is written, not added to
  const Real* ahead = nullptr;  // where the next panel lies, if it was packed before
  std::int64_t vectors() const { return (columns + kPanelLanes - 1) / kPanelLanes; }
  const Real* at(std::int64_t row) const {
    return x + (x_row ? row * x_row : row / kPanelRows * kPanelRows * depth + row % kPanelRows);
  }
};

template <int kRows, int kVectors, bool kWhole, class Real>
inline __attribute__((always_inline)) void looped_rows(const PanelBlock<Real>& p, std::int64_t first) {
  const Real* __restrict x = p.at(first);
  Real* __restrict out = p.out + first * p.out_row;
  const std::int64_t x_row = p.x_row ? p.x_row : 1, x_inner = p.x_row ? 1 : kPanelRows;
  Real sum[kRows][kVectors][kPanelLanes] = {};
  const Real* __restrict panel = p.panel;
  for (std::int64_t k = 0; k < p.depth; ++k) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Real factor = x[r * x_row + k * x_inner];
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 1
        for (int lane = 0; lane < kPanelLanes; ++lane)
          sum[r][v][lane] = multiply_add(factor, panel[(k * kVectors + v) * kPanelLanes + lane], sum[r][v][lane]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    Real* __restrict to = out + r * p.out_row;
    if constexpr (kWhole) {
      for (int v = 0; v < kVectors && !p.fresh; ++v)
        for (int lane = 0; lane < kPanelLanes; ++lane) sum[r][v][lane] += to[v * kPanelLanes + lane];
      for (int v = 0; v < kVectors; ++v)
        for (int lane = 0; lane < kPanelLanes; ++lane) to[v * kPanelLanes + lane] = sum[r][v][lane];
    } else {
      for (std::int64_t c = 0; c < p.columns; ++c) {
        const Real here = sum[r][c / kPanelLanes][c % kPanelLanes];
        to[c] = p.fresh ? here : to[c] + here;
      }
    }
  }
}

template <int kVectors, class Real>
inline __attribute__((always_inline)) void looped_panel(const PanelBlock<Real>& p) {
  std::int64_t row = 0;
  for (; row + kPanelRows <= p.rows; row += kPanelRows) {
    if (p.columns == kVectors * kPanelLanes)
      looped_rows<kPanelRows, kVectors, true>(p, row);
    else
      looped_rows<kPanelRows, kVectors, false>(p, row);
  }
  for (; row < p.rows; ++row) looped_rows<1, kVectors, false>(p, row);
}

template <class Real>
inline __attribute__((always_inline)) void looped_vectors(const PanelBlock<Real>& p) {
  if (p.vectors() == 3) return looped_panel<3>(p);
  if (p.vectors() == 2) return looped_panel<2>(p);
  looped_panel<1>(p);
}

TWINBENCH_CPU_CLONES static void multiply_looped(const PanelBlock<float>& p) { looped_vectors(p); }
// fp64 proves gradients and is never timed: one form for every processor.
static void multiply_looped(const PanelBlock<double>& p) { looped_vectors(p); }

#if defined(TWINBENCH_WIDE_PANELS)
#define TWINBENCH_WIDE inline __attribute__((target("arch=x86-64-v4,avx512bf16"), always_inline))

// kPackedX: the rows are packed, [depth][kPanelRows].
template <int kRows, int kVectors, bool kPairs, bool kPackedX>
TWINBENCH_WIDE void wide_rows(const PanelBlock<float>& p, std::int64_t first, const __mmask16* mask) {
  __m512 sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_setzero_ps();
  const float *x = p.at(first), *panel = p.panel;
  const std::int64_t x_row = kPackedX ? 1 : p.x_row;
  // A line a step: the first three blocks of rows fetch the panel that comes next, the others what is there.
  const std::int64_t block = first / kPanelRows;
  const float* ahead = p.ahead && block < kPanelVectors ? p.ahead + block * p.depth * kPanelLanes : panel;
  for (std::int64_t k = 0; k < p.depth; ++k) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + k * kPanelLanes), _MM_HINT_T1);
    __m512 w[kVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) w[v] = _mm512_loadu_ps(panel + v * kPanelLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(x[r * x_row]);
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) {
        if constexpr (kPairs)
          sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)factor, (__m512bh)w[v]);
        else
          sum[r][v] = _mm512_fmadd_ps(factor, w[v], sum[r][v]);
      }
    }
    panel += kVectors * kPanelLanes;
    x += kPackedX ? kPanelRows : 1;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    float* to = p.out + (first + r) * p.out_row;
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      float* at = to + v * kPanelLanes;
      if (!p.fresh) sum[r][v] = _mm512_add_ps(sum[r][v], _mm512_maskz_loadu_ps(mask[v], at));
      _mm512_mask_storeu_ps(at, mask[v], sum[r][v]);
    }
  }
}

template <int kVectors, bool kPairs, bool kPackedX>
TWINBENCH_WIDE void wide_panel(const PanelBlock<float>& p) {
  __mmask16 mask[kVectors];
  for (int v = 0; v < kVectors; ++v)
    mask[v] = static_cast<__mmask16>((1u << std::clamp<std::int64_t>(p.columns - v * kPanelLanes, 0, 16)) - 1);
  std::int64_t row = 0;
  for (; row + 8 <= p.rows; row += 8) wide_rows<8, kVectors, kPairs, kPackedX>(p, row, mask);
  if (row + 4 <= p.rows) {
    wide_rows<4, kVectors, kPairs, kPackedX>(p, row, mask);
    row += 4;
  }
  for (; row < p.rows; ++row) wide_rows<1, kVectors, kPairs, kPackedX>(p, row, mask);
}

template <bool kPairs, bool kPackedX>
__attribute__((target("arch=x86-64-v4,avx512bf16"))) void multiply_wide(const PanelBlock<float>& p) {
  if (p.vectors() == 3) return wide_panel<3, kPairs, kPackedX>(p);
  if (p.vectors() == 2) return wide_panel<2, kPairs, kPackedX>(p);
  wide_panel<1, kPairs, kPackedX>(p);
}
#undef TWINBENCH_WIDE
#endif

template <class Real>
inline void multiply_block(PanelWay way, const PanelBlock<Real>& p) {
#if defined(TWINBENCH_WIDE_PANELS)
  if constexpr (std::is_same_v<Real, float>) {
    if (way == PanelWay::kPairs) return p.x_row ? multiply_wide<true, false>(p) : multiply_wide<true, true>(p);
    if (way == PanelWay::kWide) return p.x_row ? multiply_wide<false, false>(p) : multiply_wide<false, true>(p);
  }
#endif
  multiply_looped(p);
}

}  // namespace twinbench::kernels
