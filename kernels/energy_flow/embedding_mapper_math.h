// Arithmetic of energy_flow.embedding_mapper (C04) between its matrix products, one row or element at a time.
//
// Host row functions sum in kLanes interleaved partial sums, so that they vectorise; the order depends on the length alone.
#pragma once

#include <cstdint>

#include "kernels/common/layer_norm.h"
#include "kernels/common/math.h"

namespace twinbench::kernels::mapper {

constexpr float kLayerNormEpsilon = 1e-5f;

TWINBENCH_HOST_DEVICE float operand(float x, bool round) { return round ? round_to_bf16(x) : x; }

// One surface cell from its last product: tanh(z + bias) * scale + offset + cell_offset.
TWINBENCH_HOST_DEVICE float cell_energy(float bounded, float scale, float offset, float cell_offset) {
  return multiply_add(bounded, scale, offset) + cell_offset;
}

// Gradient of z in the above.
TWINBENCH_HOST_DEVICE float cell_gradient(float gradient, float bounded, float scale) {
  return gradient * scale * tanh_derivative_from_output(bounded);
}

// ---- whole rows, on the host ----------------------------------------------------------------------------------------

constexpr int kLanes = 32;

// Sum over i < count of term(i), in kLanes interleaved partial sums that are then added in order.
template <class Real = float, class Term>
TWINBENCH_HOST_DEVICE Real row_sum(std::int64_t count, Term term) {
  Real partial[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) partial[lane] += term(i + lane);
  for (int lane = 0; i + lane < count; ++lane) partial[lane] += term(i + lane);
  Real sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += partial[lane];
  return sum;
}

// values: product -> GELU(product + bias) -> normalised, in place; hidden: operand(gain * normalised + shift).
// `before` keeps product + bias for the backward pass, or is null. Returns 1 / deviation.
TWINBENCH_HOST_DEVICE float activation_row(std::int64_t count, float* __restrict values, const float* __restrict bias,
                                           const float* __restrict gain, const float* __restrict shift, bool round,
                                           float* __restrict before, float* __restrict hidden) {
  for (std::int64_t i = 0; i < count; ++i) values[i] += bias[i];
  if (before)
    for (std::int64_t i = 0; i < count; ++i) before[i] = values[i];
  for (std::int64_t i = 0; i < count; ++i) values[i] = gelu(values[i]);
  const float mean = row_sum(count, [=](std::int64_t i) { return values[i]; }) / static_cast<float>(count);
  const float variance = row_sum(count, [=](std::int64_t i) {
                           const float deviation = values[i] - mean;
                           return deviation * deviation;
                         }) /
                         static_cast<float>(count);
  const float inverse = inverse_deviation(variance, kLayerNormEpsilon);
  for (std::int64_t i = 0; i < count; ++i) values[i] = normalized(values[i], mean, inverse);
  for (std::int64_t i = 0; i < count; ++i) hidden[i] = multiply_add(values[i], gain[i], shift[i]);
  if (round)
    for (std::int64_t i = 0; i < count; ++i) hidden[i] = round_to_bf16(hidden[i]);
  return inverse;
}

// out = gradient of (product + bias), given the gradient of hidden and what activation_row left behind.
TWINBENCH_HOST_DEVICE void activation_backward_row(std::int64_t count, const float* __restrict gradient,
                                                   const float* __restrict normal, const float* __restrict before,
                                                   const float* __restrict gain, float inverse, float* __restrict out) {
  const float mean =
      row_sum(count, [=](std::int64_t i) { return gradient[i] * gain[i]; }) / static_cast<float>(count);
  const float mean_normal = row_sum(count, [=](std::int64_t i) { return gradient[i] * gain[i] * normal[i]; }) /
                            static_cast<float>(count);
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = layer_norm_input_gradient(gradient[i] * gain[i], mean, normal[i], mean_normal, inverse) *
             gelu_derivative(before[i]);
}

TWINBENCH_HOST_DEVICE void surface_row(std::int64_t count, const float* __restrict product, const float* __restrict bias,
                                       const float* __restrict cell_offset, float scale, float offset,
                                       float* __restrict surface) {
  for (std::int64_t i = 0; i < count; ++i)
    surface[i] = cell_energy(tanh(product[i] + bias[i]), scale, offset, cell_offset[i]);
}

}  // namespace twinbench::kernels::mapper
