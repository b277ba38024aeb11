// Arithmetic of energy_flow.embedding_mapper (C04) between its matrix products, one row or element at a time.
//
// Host row functions sum in kLanes interleaved partial sums, so that they vectorise; the order depends on the length alone.
#pragma once

#include <cstdint>

#include "kernels/common/layer_norm.h"
#include "kernels/common/math.h"

namespace twinbench::energy_flow::embedding_mapper {

using namespace kernels;  // NOLINT: the shared layer

constexpr double kLayerNormEpsilon = 1e-5;

TWINBENCH_HOST_DEVICE float operand(float x, bool round) { return round ? round_to_bf16(x) : x; }

// One surface cell from its last product: tanh(z + bias) * scale + offset + cell_offset.
template <class Real>
TWINBENCH_HOST_DEVICE Real cell_energy(Real bounded, Real scale, Real offset, Real cell_offset) {
  return multiply_add(bounded, scale, offset) + cell_offset;
}

// Gradient of z in the above.
template <class Real>
TWINBENCH_HOST_DEVICE Real cell_gradient(Real gradient, Real bounded, Real scale) {
  return gradient * scale * tanh_derivative_from_output(bounded);
}

// ---- whole rows, on the host ----------------------------------------------------------------------------------------

constexpr int kLanes = 32;

// Sum over i < count of term(i), in kLanes interleaved partial sums that are then added in order.
template <class Real, class Term>
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
template <class Real>
TWINBENCH_HOST_DEVICE Real activation_row(std::int64_t count, Real* __restrict values, const Real* __restrict bias,
                                          const Real* __restrict gain, const Real* __restrict shift, bool round,
                                          Real* __restrict before, Real* __restrict hidden) {
  for (std::int64_t i = 0; i < count; ++i) values[i] += bias[i];
  if (before)
    for (std::int64_t i = 0; i < count; ++i) before[i] = values[i];
  for (std::int64_t i = 0; i < count; ++i) values[i] = gelu(values[i]);
  const Real mean = row_sum<Real>(count, [=](std::int64_t i) { return values[i]; }) / static_cast<Real>(count);
  const Real squares = row_sum<Real>(count, [=](std::int64_t i) {
    const Real deviation = values[i] - mean;
    return deviation * deviation;
  });
  const Real variance = squares / static_cast<Real>(count);
  const Real inverse = inverse_deviation(variance, Real(kLayerNormEpsilon));
  for (std::int64_t i = 0; i < count; ++i) values[i] = normalized(values[i], mean, inverse);
  for (std::int64_t i = 0; i < count; ++i) hidden[i] = multiply_add(values[i], gain[i], shift[i]);
  if (round)
    for (std::int64_t i = 0; i < count; ++i) hidden[i] = round_to_bf16(hidden[i]);
  return inverse;
}

// out = gradient of (product + bias), given the gradient of hidden and what activation_row left behind.
template <class Real>
TWINBENCH_HOST_DEVICE void activation_backward_row(std::int64_t count, const Real* __restrict gradient,
                                                   const Real* __restrict normal, const Real* __restrict before,
                                                   const Real* __restrict gain, Real inverse, Real* __restrict out) {
  const Real mean =
      row_sum<Real>(count, [=](std::int64_t i) { return gradient[i] * gain[i]; }) / static_cast<Real>(count);
  const Real mean_normal =
      row_sum<Real>(count, [=](std::int64_t i) { return gradient[i] * gain[i] * normal[i]; }) / static_cast<Real>(count);
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = layer_norm_input_gradient(gradient[i] * gain[i], mean, normal[i], mean_normal, inverse) *
             gelu_derivative(before[i]);
}

template <class Real>
TWINBENCH_HOST_DEVICE void surface_row(std::int64_t count, const Real* __restrict product, const Real* __restrict bias,
                                       const Real* __restrict cell_offset, Real scale, Real offset,
                                       Real* __restrict surface) {
  for (std::int64_t i = 0; i < count; ++i)
    surface[i] = cell_energy(tanh(product[i] + bias[i]), scale, offset, cell_offset[i]);
}

}  // namespace twinbench::energy_flow::embedding_mapper
