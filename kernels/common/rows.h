// Whole rows of a bias-GELU-LayerNorm layer on the host.
//
// Sums run in kSumLanes interleaved partial sums, so that they vectorise; the order depends on the length alone.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/common/layer_norm.h"
#include "kernels/common/math.h"

namespace twinbench::kernels {

constexpr int kSumLanes = 32;

// Sum over i < count of term(i), in kSumLanes interleaved partial sums that are then added in order.
template <class Real, class Term>
TWINBENCH_HOST_DEVICE Real row_sum(std::int64_t count, Term term) {
  Real partial[kSumLanes] = {};
  std::int64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes)
    for (int lane = 0; lane < kSumLanes; ++lane) partial[lane] += term(i + lane);
  for (int lane = 0; i + lane < count; ++lane) partial[lane] += term(i + lane);
  Real sum = 0;
  for (int lane = 0; lane < kSumLanes; ++lane) sum += partial[lane];
  return sum;
}

// One row of an ActivationLayer; in bf16 mode (`round`) `hidden.plain` holds the rounded operand.
template <class Real>
TWINBENCH_HOST_DEVICE void activation_row(const ActivationLayer<Real> &layer, std::int64_t row, bool round) {
  const std::int64_t count = layer.width;
  const Real *__restrict product = layer.product + row * count;
  Real *__restrict values = layer.hidden.plain + row * count;
  const Real *__restrict bias = layer.bias, *__restrict gain = layer.gain, *__restrict shift = layer.shift;
  for (std::int64_t i = 0; i < count; ++i) values[i] = gelu(product[i] + bias[i]);
  const Real mean = row_sum<Real>(count, [=](std::int64_t i) { return values[i]; }) / static_cast<Real>(count);
  const Real squares = row_sum<Real>(count, [=](std::int64_t i) {
    const Real deviation = values[i] - mean;
    return deviation * deviation;
  });
  const Real inverse = inverse_deviation(squares / static_cast<Real>(count));
  if (layer.inverse) layer.inverse[row] = inverse;
  for (std::int64_t i = 0; i < count; ++i) values[i] = normalized(values[i], mean, inverse);
  if (layer.normal) {
    Real *__restrict normal = layer.normal + row * count;
    for (std::int64_t i = 0; i < count; ++i) normal[i] = values[i];
  }
  for (std::int64_t i = 0; i < count; ++i) values[i] = scaled(values[i], gain[i], shift[i]);
  if (round)
    for (std::int64_t i = 0; i < count; ++i) values[i] = round_to_bf16(values[i]);
}

// grad_product, from grad_hidden and what activation_row left behind.
template <class Real>
TWINBENCH_HOST_DEVICE void activation_backward_row(const ActivationLayer<Real> &layer, std::int64_t row) {
  const std::int64_t count = layer.width, start = row * count;
  const Real *__restrict gradient = layer.grad_hidden + start, *__restrict normal = layer.normal + start;
  const Real *__restrict product = layer.product + start, *__restrict bias = layer.bias;
  const Real *__restrict gain = layer.gain;
  Real *__restrict out = layer.grad_product.plain + start;
  const Real inverse = layer.inverse[row];
  const Real mean =
      row_sum<Real>(count, [=](std::int64_t i) { return gradient[i] * gain[i]; }) / static_cast<Real>(count);
  const Real mean_normal = row_sum<Real>(count, [=](std::int64_t i) { return gradient[i] * gain[i] * normal[i]; }) /
                           static_cast<Real>(count);
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = layer_norm_input_gradient(gradient[i] * gain[i], mean, normal[i], mean_normal, inverse) *
             gelu_derivative(product[i] + bias[i]);
}

}  // namespace twinbench::kernels
