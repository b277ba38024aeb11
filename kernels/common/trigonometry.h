// Sine and cosine of one angle together, without branches, so that g++ vectorises a plain loop over them; the same
// polynomials on host and device.
#pragma once

#include <cmath>

#include "kernels/common/float_bits.h"

namespace twinbench::kernels {

template <class Real>
struct SineCosine {
  Real sine, cosine;
};

TWINBENCH_HOST_DEVICE SineCosine<double> sine_cosine(double angle) { return {std::sin(angle), std::cos(angle)}; }

// For angles up to 2^11 either way, absolute errors below 1.5e-7; beyond, fewer and fewer digits. NaN gives NaN.
TWINBENCH_HOST_DEVICE SineCosine<float> sine_cosine(float angle) {
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits: quarters = round(angle / (pi / 2)).
  const float shifted = multiply_add(angle, 0.636619772f, 12582912.0f);
  const float quarters = shifted - 12582912.0f;
  // pi / 2 in three parts, the first two of so few bits that their products are exact.
  float r = multiply_add(quarters, -1.5703125f, angle);
  r = multiply_add(quarters, -4.837512969970703125e-4f, r);
  r = multiply_add(quarters, -7.54978995e-8f, r);
  const float s = r * r;
  float p = -1.951601167e-04f;
  p = multiply_add(p, s, 8.332168924e-03f);
  p = multiply_add(p, s, -1.666665480e-01f);
  const float sine = multiply_add(p * s, r, r);
  float q = 2.443700756e-05f;
  q = multiply_add(q, s, -1.388735536e-03f);
  q = multiply_add(q, s, 4.166664663e-02f);
  const float cosine = multiply_add(q * s, s, multiply_add(s, -0.5f, 1.0f));
  // Every quarter of a turn they change places, every half their signs.
  const std::uint32_t turned = bits_of(shifted);
  const bool swapped = (turned & 1u) != 0;
  const std::uint32_t sine_sign = (turned & 2u) << 30, cosine_sign = ((turned + 1u) & 2u) << 30;
  return {float_of_bits(bits_of(swapped ? cosine : sine) ^ sine_sign),
          float_of_bits(bits_of(swapped ? sine : cosine) ^ cosine_sign)};
}

}  // namespace twinbench::kernels
