// Arithmetic of the surface collection (C11), shared by host and device: the cell of a flow, its weight, and sums that
// are exact, so that no order of the flows changes a bit. In the namespace of the component that specifies it; the
// whole flow's passes take it too.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/math.h"

namespace twinbench::energy_flow::surface_collection {

// The nearest of `extent` cells along one axis; halves go to the even one. Coordinates lie in [-1, 1]; a NaN, which
// movement has removed, would be in cell 0.
TWINBENCH_HOST_DEVICE int cell_along(float coordinate, int extent) {
  const float last = static_cast<float>(extent - 1);
  const float nearest = std::rint((coordinate + 1.0f) * 0.5f * last);
  const float low = nearest > 0.0f ? nearest : 0.0f;
  return static_cast<int>(low < last ? low : last);
}

// The factor of |energy| in a weight, a constant of the backward pass.
TWINBENCH_HOST_DEVICE float weight_factor(float distance, std::int32_t age) {
  return 1.0f / (1.0f + distance) * (1.0f + 0.1f * static_cast<float>(age));
}
// Infinite where the energy, or the weight, is not finite: the softmax of such a cell is NaN throughout.
TWINBENCH_HOST_DEVICE float weight_of(float energy, float distance, std::int32_t age) {
  const float weight = kernels::absolute(energy) * (1.0f / (1.0f + distance)) * (1.0f + 0.1f * static_cast<float>(age));
  return kernels::absolute(weight) < INFINITY ? weight : INFINITY;
}

// Bits of |energy|, which ascend with it.
TWINBENCH_HOST_DEVICE std::uint32_t magnitude_of(float energy) { return kernels::bits_of(energy) & 0x7fffffffu; }

// 2^-k and 2^k for a cell whose largest |energy| is in [2^k, 2^(k+1)); in between both are normal numbers.
TWINBENCH_HOST_DEVICE std::uint32_t exponent_of(std::uint32_t magnitude) {
  const std::uint32_t exponent = magnitude >> 23, low = exponent < 1u ? 1u : exponent;
  return low > 253u ? 253u : low;
}
TWINBENCH_HOST_DEVICE float inverse_scale(std::uint32_t magnitude) {
  return kernels::float_of_bits((254u - exponent_of(magnitude)) << 23);
}
TWINBENCH_HOST_DEVICE float scale_of(std::uint32_t magnitude) {
  return kernels::float_of_bits(exponent_of(magnitude) << 23);
}

// A flow's share before it is divided by the cell's sum: 1 for the largest weight, at most 1.
TWINBENCH_HOST_DEVICE float share_of(float weight, float largest_weight) {
  return kernels::exp(weight - largest_weight);
}

// Sums are counted in units of 2^-40. A share is a multiple of one unit from 2^-16 on; smaller ones lose less than a
// unit, of a sum that is at least 1. At most 2^20 terms below 4 each: no sum overflows.
constexpr float kUnit = 1099511627776.0f;
constexpr std::int64_t kMostSlots = std::int64_t{1} << 20;
TWINBENCH_HOST_DEVICE std::int64_t units_of(float value) { return static_cast<std::int64_t>(value * kUnit); }
// Of the energy, by the cell's scale; finite where the cell's largest weight is.
TWINBENCH_HOST_DEVICE float scaled_energy(float share, float energy, float inverse) {
  return share * (energy * inverse);
}

// What a cell knows of its flows. Before the first: -infinity and zeros. Nothing is added where the weight is infinite.
struct Cell {
  float largest_weight;
  std::uint32_t magnitude;  // of the largest |energy|
  std::int64_t shares, energies;
};
TWINBENCH_HOST_DEVICE float total_share(const Cell& cell) { return static_cast<float>(cell.shares) / kUnit; }
// Mean of the cell's energies by their shares: 0 without a flow, the energy itself with one.
TWINBENCH_HOST_DEVICE float mean_energy(const Cell& cell) {
  if (!(cell.largest_weight < INFINITY)) return NAN;
  if (cell.largest_weight == -INFINITY) return 0.0f;
  return static_cast<float>(cell.energies) / static_cast<float>(cell.shares) * scale_of(cell.magnitude);
}

// Gradient of a flow's energy (decision 16): through the energy alone, distance and age being constants.
TWINBENCH_HOST_DEVICE float energy_gradient(float energy, float share, float factor, float total, float mean,
                                            float gradient) {
  const float sign = energy > 0.0f ? 1.0f : energy < 0.0f ? -1.0f : 0.0f;
  return gradient * (share / total) * (1.0f + sign * factor * (energy - mean));
}

}  // namespace twinbench::energy_flow::surface_collection
