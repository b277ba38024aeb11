// The simple neuron on the host: one tile of flows through all layers, forward and back.
//
// A tile holds kLanes flows; every array in it is [channels][kLanes], so a loop over lanes is one vector instruction and
// kLanes = 1 is the plain scalar form. A lane never touches another one: a flow's features are the same bits in any tile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/layer_norm.h"
#include "kernels/common/math.h"
#include "kernels/energy_flow/simple_neuron/math.h"

namespace twinbench::energy_flow::simple_neuron {


template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void round_operands(int count, Real* values, bool round) {
  if (!round) return;
  for (int i = 0; i < count * kLanes; ++i) values[i] = round_to_bf16(values[i]);
}

// out[r] = (bias ? bias[r] : 0) + sum_j coefficient[r * row_stride + j * inner_stride] * in[j], j ascending,
// for kRows rows that stay in registers.
template <int kRows, int kLanes, class Real>
TWINBENCH_HOST_DEVICE void multiply_rows(int inner, const Real* __restrict coefficient, int row_stride, int inner_stride,
                                         const Real* __restrict in, std::type_identity_t<const Real*> bias,
                                         Real* __restrict out) {
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
                                    int inner_stride, const Real* __restrict in,
                                    std::type_identity_t<const Real*> bias, Real* __restrict out) {
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
  for (int lane = 0; lane < kLanes; ++lane)
    inverse[lane] = inverse_deviation(squares[lane] / count, Real(kLayerNormEpsilon));
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
      hidden[c * kLanes + lane] = gelu(multiply_add(normal[c * kLanes + lane], gain[c], shift[c]));
  round_operands<kLanes>(channels, hidden, round);
}

// Everything one tile computes on the way, in one array of size() floats. `position` is filled by the caller and already
// an operand; `energy` is the last row of `state`.
template <int kLanes, class Real = float>
struct SimpleNeuronTile {
  SimpleNeuronLayout layout;
  Real* base = nullptr;

  static std::int64_t size(const SimpleNeuronLayout& layout) {
    return std::int64_t{kLanes} * (17 + 6 * layout.hidden + layout.outputs);
  }
  TWINBENCH_HOST_DEVICE Real* row(int index) const { return base + index * kLanes; }
  TWINBENCH_HOST_DEVICE Real* position() const { return row(0); }   // [3]
  TWINBENCH_HOST_DEVICE Real* state() const { return row(3); }      // [4]
  TWINBENCH_HOST_DEVICE Real* energy() const { return row(6); }     // [1]
  TWINBENCH_HOST_DEVICE Real* inverse_1() const { return row(7); }  // [1]
  TWINBENCH_HOST_DEVICE Real* inverse_2() const { return row(8); }  // [1]
  TWINBENCH_HOST_DEVICE Real* position_gradient() const { return row(9); }  // [3], backward only
  TWINBENCH_HOST_DEVICE Real* energy_gradient() const { return row(12); }   // [1]
  TWINBENCH_HOST_DEVICE Real* state_gradient() const { return row(13); }    // [4]
  TWINBENCH_HOST_DEVICE Real* normal_1() const { return row(17); }          // [hidden]
  TWINBENCH_HOST_DEVICE Real* hidden_1() const { return row(17 + layout.hidden); }
  TWINBENCH_HOST_DEVICE Real* normal_2() const { return row(17 + 2 * layout.hidden); }
  TWINBENCH_HOST_DEVICE Real* hidden_2() const { return row(17 + 3 * layout.hidden); }
  TWINBENCH_HOST_DEVICE Real* gradient() const { return row(17 + 4 * layout.hidden); }  // [hidden], backward only
  TWINBENCH_HOST_DEVICE Real* spare() const { return row(17 + 5 * layout.hidden); }     // [hidden], backward only
  TWINBENCH_HOST_DEVICE Real* features() const { return row(17 + 6 * layout.hidden); }  // [outputs], or their gradient
};

// Fills the tile's hidden layers from its position and energy; `weights` are packed, matrices already operands.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void simple_neuron_hidden(const SimpleNeuronTile<kLanes, Real>& tile,
                                                const Real* __restrict weights, bool round) {
  const SimpleNeuronLayout at = tile.layout;
  multiply<kLanes>(3, 3, weights + at.coordinate_weight(), 1, 3, tile.position(), weights + at.coordinate_bias(),
                   tile.state());
  round_operands<kLanes>(4, tile.state(), round);
  multiply<kLanes>(at.hidden, 4, weights + at.weight_1(), 1, at.hidden, tile.state(), weights + at.bias_1(),
                   tile.normal_1());
  normalize<kLanes>(at.hidden, tile.normal_1(), tile.inverse_1());
  activate<kLanes>(at.hidden, tile.normal_1(), weights + at.gain_1(), weights + at.shift_1(), round, tile.hidden_1());
  multiply<kLanes>(at.hidden, at.hidden, weights + at.weight_2(), 1, at.hidden, tile.hidden_1(), weights + at.bias_2(),
                   tile.normal_2());
  normalize<kLanes>(at.hidden, tile.normal_2(), tile.inverse_2());
  activate<kLanes>(at.hidden, tile.normal_2(), weights + at.gain_2(), weights + at.shift_2(), round, tile.hidden_2());
}

template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void simple_neuron_forward(const SimpleNeuronTile<kLanes, Real>& tile,
                                                 const Real* __restrict weights, bool round) {
  const SimpleNeuronLayout at = tile.layout;
  simple_neuron_hidden(tile, weights, round);
  multiply<kLanes>(at.outputs, at.hidden, weights + at.weight_3(), 1, at.outputs, tile.hidden_2(),
                   weights + at.bias_3(), tile.features());
}

// ---- backward -------------------------------------------------------------------------------------------------------

// out[k][c] += sum over lanes of left[k][lane] * rows[lane][c], lanes ascending, for kRows k and kColumns c in registers.
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
      const Real before_gain = gradient[i] * gelu_derivative(multiply_add(normal[i], gain[c], shift[c]));
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

// Weight gradients while they are being summed: matrices in the packed layout, and [channel][kLanes] sums of all biases,
// gains and shifts, which finish() adds up in lane order. Zero both before the first tile.
template <int kLanes, class Real = float>
struct SimpleNeuronGradients {
  SimpleNeuronLayout layout;
  Real* packed = nullptr;     // [layout.total()]
  Real* lane_sums = nullptr;  // [lane_sum_size(layout)]
  Real* rows = nullptr;       // [rows_size(layout)], scratch

  static std::int64_t lane_sum_size(const SimpleNeuronLayout& layout) {
    return std::int64_t{kLanes} * (3 + 6 * layout.hidden + layout.outputs);
  }
  static std::int64_t rows_size(const SimpleNeuronLayout& layout) {
    return std::int64_t{kLanes} * (layout.hidden > layout.outputs ? layout.hidden : layout.outputs);
  }
  // index: 0 bias_1, 1 gain_1, 2 shift_1, 3 bias_2, 4 gain_2, 5 shift_2, 6 bias_3
  TWINBENCH_HOST_DEVICE Real* sums(int index) const { return lane_sums + (3 + index * layout.hidden) * kLanes; }

  TWINBENCH_HOST_DEVICE void finish_one(int channels, const Real* sums, Real* out) const {
    for (int c = 0; c < channels; ++c) {
      Real sum = Real(0);
      for (int lane = 0; lane < kLanes; ++lane) sum += sums[c * kLanes + lane];
      out[c] = sum;
    }
  }
  TWINBENCH_HOST_DEVICE void finish() const {
    const int n = layout.hidden;
    finish_one(3, lane_sums, packed + layout.coordinate_bias());
    const int offsets[] = {layout.bias_1(), layout.gain_1(), layout.shift_1(),
                           layout.bias_2(), layout.gain_2(), layout.shift_2()};
    for (int i = 0; i < 6; ++i) finish_one(n, sums(i), packed + offsets[i]);
    finish_one(layout.outputs, sums(6), packed + layout.bias_3());
  }
};

// Recomputes the hidden layers (nothing is saved by the forward pass), then walks back. On entry tile.features() holds
// the gradient of the features, zero in unused lanes; on exit tile.position_gradient() and
// tile.energy_gradient() hold the inputs' gradients.
template <int kLanes, class Real>
TWINBENCH_HOST_DEVICE void simple_neuron_backward(const SimpleNeuronTile<kLanes, Real>& tile,
                                                  const Real* __restrict weights, bool round,
                                                  const SimpleNeuronGradients<kLanes, Real>& sum) {
  const SimpleNeuronLayout at = tile.layout;
  simple_neuron_hidden(tile, weights, round);
  add_to_lane_sums<kLanes>(at.outputs, tile.features(), sum.sums(6));
  round_operands<kLanes>(at.outputs, tile.features(), round);
  add_products<kLanes>(at.hidden, at.outputs, tile.hidden_2(), tile.features(), sum.rows, sum.packed + at.weight_3());
  multiply<kLanes>(at.hidden, at.outputs, weights + at.weight_3(), at.outputs, 1, tile.features(), nullptr,
                   tile.gradient());
  activation_backward<kLanes>(at.hidden, tile.normal_2(), tile.inverse_2(), weights + at.gain_2(),
                              weights + at.shift_2(), tile.gradient(), sum.sums(4), sum.sums(5));
  add_to_lane_sums<kLanes>(at.hidden, tile.gradient(), sum.sums(3));
  round_operands<kLanes>(at.hidden, tile.gradient(), round);
  add_products<kLanes>(at.hidden, at.hidden, tile.hidden_1(), tile.gradient(), sum.rows, sum.packed + at.weight_2());
  multiply<kLanes>(at.hidden, at.hidden, weights + at.weight_2(), at.hidden, 1, tile.gradient(), nullptr, tile.spare());
  activation_backward<kLanes>(at.hidden, tile.normal_1(), tile.inverse_1(), weights + at.gain_1(),
                              weights + at.shift_1(), tile.spare(), sum.sums(1), sum.sums(2));
  add_to_lane_sums<kLanes>(at.hidden, tile.spare(), sum.sums(0));
  round_operands<kLanes>(at.hidden, tile.spare(), round);
  add_products<kLanes>(4, at.hidden, tile.state(), tile.spare(), sum.rows, sum.packed + at.weight_1());
  Real* coordinates = tile.state_gradient();
  multiply<kLanes>(4, at.hidden, weights + at.weight_1(), at.hidden, 1, tile.spare(), nullptr, coordinates);
  add_to_lane_sums<kLanes>(3, coordinates, sum.lane_sums);
  for (int lane = 0; lane < kLanes; ++lane) tile.energy_gradient()[lane] = coordinates[3 * kLanes + lane];
  round_operands<kLanes>(3, coordinates, round);
  add_products<kLanes>(3, 3, tile.position(), coordinates, sum.rows, sum.packed + at.coordinate_weight());
  multiply<kLanes>(3, 3, weights + at.coordinate_weight(), 3, 1, coordinates, nullptr, tile.position_gradient());
}

}  // namespace twinbench::energy_flow::simple_neuron
