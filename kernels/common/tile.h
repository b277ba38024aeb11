// Small networks on the host: layers of one tile of items, forward and back.
//
// A tile holds kLanes items; every array in it is [channels][kLanes], so a loop over lanes is one vector instruction
// and kLanes = 1 is the plain scalar form. A lane never touches another one: an item's results are the same bits in any
// tile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/layer_norm.h"
#include "kernels/common/math.h"

namespace twinbench::kernels::tile {

template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void round_operands(int count, Real* values, bool round) {
  if (!round) return;
  for (int i = 0; i < count * kLanes; ++i) values[i] = round_to_bf16(values[i]);
}

// out[r] = (bias ? bias[r] : 0) + sum_j coefficient[r * row_stride + j * inner_stride] * in[j], j ascending,
// for kRows rows that stay in registers.
template <int kRows, int kLanes, class Real>
TWINBENCH_HOST_DEVICE void multiply_rows(int inner, const Real* __restrict coefficient, int row_stride,
                                         int inner_stride, const Real* __restrict in,
                                         std::type_identity_t<const Real*> bias, Real* __restrict out) {
  Real sum[kRows][kLanes];
  for (int r = 0; r < kRows; ++r)
    for (int lane = 0; lane < kLanes; ++lane) sum[r][lane] = bias ? bias[r] : Real(0);
  for (int j = 0; j < inner; ++j) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Real c = coefficient[r * row_stride + j * inner_stride];
#pragma GCC unroll 1
      for (int lane = 0; lane < kLanes; ++lane) sum[r][lane] = multiply_add(c, in[j * kLanes + lane], sum[r][lane]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int lane = 0; lane < kLanes; ++lane) out[r * kLanes + lane] = sum[r][lane];
}

template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void multiply(int rows, int inner, const Real* __restrict coefficient, int row_stride,
                                    int inner_stride, const Real* __restrict in, std::type_identity_t<const Real*> bias,
                                    Real* __restrict out) {
  int r = 0;
  for (; r + 8 <= rows; r += 8)
    multiply_rows<8, kLanes>(inner, coefficient + r * row_stride, row_stride, inner_stride, in, bias ? bias + r : bias,
                             out + r * kLanes);
  for (; r < rows; ++r)
    multiply_rows<1, kLanes>(inner, coefficient + r * row_stride, row_stride, inner_stride, in, bias ? bias + r : bias,
                             out + r * kLanes);
}

// Normalises each lane over its channels, in place; inverse[lane] = 1 / deviation. Two passes, channels ascending.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void normalize(int channels, Real* __restrict values, Real* __restrict inverse) {
  Real mean[kLanes] = {}, squares[kLanes] = {};
  for (int c = 0; c < channels; ++c)
    for (int lane = 0; lane < kLanes; ++lane) mean[lane] += values[c * kLanes + lane];
  const Real count = static_cast<Real>(channels);
  for (int lane = 0; lane < kLanes; ++lane) mean[lane] /= count;
  for (int c = 0; c < channels; ++c)
    for (int lane = 0; lane < kLanes; ++lane) {
      const Real deviation = values[c * kLanes + lane] - mean[lane];
      squares[lane] = multiply_add(deviation, deviation, squares[lane]);
    }
  for (int lane = 0; lane < kLanes; ++lane) inverse[lane] = inverse_deviation(squares[lane] / count);
  for (int c = 0; c < channels; ++c)
    for (int lane = 0; lane < kLanes; ++lane)
      values[c * kLanes + lane] = normalized(values[c * kLanes + lane], mean[lane], inverse[lane]);
}

// hidden = operand(GELU(gain * normalized + shift)): what the next product reads.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void activate(int channels, const Real* __restrict normal, const Real* __restrict gain,
                                    const Real* __restrict shift, bool round, Real* __restrict hidden) {
  for (int c = 0; c < channels; ++c)
    for (int lane = 0; lane < kLanes; ++lane)
      hidden[c * kLanes + lane] = gelu(scaled(normal[c * kLanes + lane], gain[c], shift[c]));
  round_operands<kLanes>(channels, hidden, round);
}

// ---- backward -------------------------------------------------------------------------------------------------------

// out[k][c] += sum over lanes of left[k][lane] * rows[lane][c], lanes ascending, for kRows k and kColumns c in
// registers.
template <int kRows, int kColumns, int kLanes, class Real>
TWINBENCH_HOST_DEVICE void add_products_block(int columns, const Real* __restrict left, const Real* __restrict rows,
                                              Real* __restrict out) {
  Real sum[kRows][kColumns];
  for (int k = 0; k < kRows; ++k)
    for (int c = 0; c < kColumns; ++c) sum[k][c] = out[k * columns + c];
  for (int lane = 0; lane < kLanes; ++lane) {
#pragma GCC unroll 4
    for (int k = 0; k < kRows; ++k) {
      const Real factor = left[k * kLanes + lane];
#pragma GCC unroll 1
      for (int c = 0; c < kColumns; ++c) sum[k][c] = multiply_add(factor, rows[lane * columns + c], sum[k][c]);
    }
  }
  for (int k = 0; k < kRows; ++k)
    for (int c = 0; c < kColumns; ++c) out[k * columns + c] = sum[k][c];
}

// out[k][c] += sum over lanes of left[k][lane] * right[c][lane]. `rows` is scratch for `right` transposed.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void add_products(int count, int columns, const Real* __restrict left,
                                        const Real* __restrict right, Real* __restrict rows, Real* __restrict out) {
  for (int c = 0; c < columns; ++c)
    for (int lane = 0; lane < kLanes; ++lane) rows[lane * columns + c] = right[c * kLanes + lane];
  int c = 0;
  for (; c + 16 <= columns; c += 16) {
    int k = 0;
    for (; k + 4 <= count; k += 4)
      add_products_block<4, 16, kLanes>(columns, left + k * kLanes, rows + c, out + k * columns + c);
    for (; k < count; ++k)
      add_products_block<1, 16, kLanes>(columns, left + k * kLanes, rows + c, out + k * columns + c);
  }
  for (; c < columns; ++c)
    for (int k = 0; k < count; ++k)
      add_products_block<1, 1, kLanes>(columns, left + k * kLanes, rows + c, out + k * columns + c);
}

template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void add_to_lane_sums(int channels, const Real* __restrict values, Real* __restrict sums) {
  for (int i = 0; i < channels * kLanes; ++i) sums[i] += values[i];
}

// out[c] = sum over lanes, in lane order.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void finish_lane_sums(int channels, const Real* sums, Real* out) {
  for (int c = 0; c < channels; ++c) {
    Real sum = Real(0);
    for (int lane = 0; lane < kLanes; ++lane) sum += sums[c * kLanes + lane];
    out[c] = sum;
  }
}

// Turns the gradient of GELU(LN(a)) into the gradient of a, in place, and adds to the lane sums of gain and shift.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void activation_backward(int channels, const Real* __restrict normal,
                                               const Real* __restrict inverse, const Real* __restrict gain,
                                               const Real* __restrict shift, Real* __restrict gradient,
                                               Real* __restrict gain_sums, Real* __restrict shift_sums) {
  Real mean[kLanes] = {}, mean_normal[kLanes] = {};
  for (int c = 0; c < channels; ++c)
    for (int lane = 0; lane < kLanes; ++lane) {
      const int i = c * kLanes + lane;
      const Real before_gain = gradient[i] * gelu_derivative(scaled(normal[i], gain[c], shift[c]));
      shift_sums[i] += before_gain;
      gain_sums[i] = multiply_add(before_gain, normal[i], gain_sums[i]);
      gradient[i] = before_gain * gain[c];
      mean[lane] += gradient[i];
      mean_normal[lane] = multiply_add(gradient[i], normal[i], mean_normal[lane]);
    }
  const Real count = static_cast<Real>(channels);
  for (int lane = 0; lane < kLanes; ++lane) mean[lane] /= count;
  for (int lane = 0; lane < kLanes; ++lane) mean_normal[lane] /= count;
  for (int c = 0; c < channels; ++c)
    for (int lane = 0; lane < kLanes; ++lane) {
      const int i = c * kLanes + lane;
      gradient[i] = layer_norm_input_gradient(gradient[i], mean[lane], normal[i], mean_normal[lane], inverse[lane]);
    }
}

}  // namespace twinbench::kernels::tile
