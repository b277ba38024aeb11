// Attention of queries over keys and values, a head of a sample at a time: what loops and kernels take, and the scalar
// steps of the online softmax. No scores lie in global memory: a tile of them is made, used and made again.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/common/fused.h"
#include "kernels/common/short_math.h"

namespace twinbench::energy_flow {

// Rows of every head of every sample: element (sample, head, row, column) lies at sample * of_sample + head * of_head +
// row * of_row + column.
template <class Real>
struct HeadRows {
  Real* data = nullptr;
  std::int64_t of_sample = 0, of_head = 0, of_row = 0;
};

template <class Real>
struct Attention {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  int batch = 0, heads = 0, queries = 0, keys = 0;  // the last two at most, where lengths are given
  int width = 0;                                    // of a head
  Real scale = 1;
  // Queries, keys, values and the gradient of the result are rounded to bf16. Probabilities and what follows are not:
  // an exponential that still waits for its sum would be rounded elsewhere than one that has been divided.
  bool round = false;
  HeadRows<const Real> query, key, value;
  const bool* padding = nullptr;  // [batch, keys]: true where a key is left out. Null: none is
  // Samples of their own lengths, queries and keys alike: sample b has rows first_row[b] ... + length[b] of its head in
  // every array here that is of queries or keys (of_sample is 0 then). Null: all have the full number.
  const std::int32_t *first_row = nullptr, *length = nullptr;
  HeadRows<Real> out = {};
  // Of each query, [batch, heads, queries]: the largest score as a power of two (kLog2E times it), and the sum of the
  // exponentials of what lies below it. Null in a forward pass that no backward pass follows.
  Real *largest = nullptr, *denominator = nullptr;
  // Backward only.
  HeadRows<const Real> grad_out = {};
  HeadRows<Real> grad_query = {}, grad_key = {}, grad_value = {};
  Real* share = nullptr;  // [batch, heads, queries]: sum of grad_out * out over the width
};

constexpr double kLog2E = 1.4426950408889634;

using kernels::fused;

// 2^x for x <= 0: exactly 1 at 0, within 1e-7 of the result, 0 below -126.5. NaN gives NaN.
TWINBENCH_HOST_DEVICE double power_below(double x) { return std::exp2(x); }
TWINBENCH_HOST_DEVICE float power_below(float x) {
#if defined(__CUDA_ARCH__)
  return kernels::short_exp2(x);
#else
  const float bounded = x < -127.0f ? -127.0f : x;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits; what is left lies within a half.
  const float shifted = bounded + 12582912.0f;
  const float r = bounded - (shifted - 12582912.0f);
  float p = 1.5353362e-4f;
  p = fused(p, r, 1.3398874e-3f);
  p = fused(p, r, 9.6184373e-3f);
  p = fused(p, r, 5.5503324e-2f);
  p = fused(p, r, 2.4022648e-1f);
  p = fused(p, r, 6.9314720e-1f);
  p = fused(p, r, 1.0f);
  return p * kernels::float_of_bits((kernels::bits_of(shifted) << 23) + 0x3f800000u);  // the power -127 is 0
#endif
}

// What is subtracted from scores before they are exponents: the largest, unless all are minus infinity, which is no
// number to subtract from itself.
template <class Real>
TWINBENCH_HOST_DEVICE Real subtrahend(Real largest) {
  return largest == -INFINITY ? Real(0) : largest;
}
template <class Real>
TWINBENCH_HOST_DEVICE Real larger_score(Real a, Real b) {
  return a > b ? a : b;  // NaN passes by: its exponential makes the sum NaN
}
// Gradient of a score before its scale, from its probability, the gradient of that, and the query's share.
template <class Real>
TWINBENCH_HOST_DEVICE Real score_gradient(Real probability, Real gradient, Real share) {
  return probability * (gradient - share);
}
template <class Real>
TWINBENCH_HOST_DEVICE Real attention_operand(Real value, bool round) {
  return round ? kernels::round_to_bf16(value) : value;
}

}  // namespace twinbench::energy_flow
