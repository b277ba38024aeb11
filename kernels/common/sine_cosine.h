// Sine and cosine together, beside math.h: of any phase, and of moderate ones without a branch, so that host loops are
// vectorised.
#pragma once

#include <cmath>

#include "kernels/common/float_bits.h"

namespace twinbench::kernels {

template <class Real>
struct SineCosine {
  Real sine, cosine;
};

// Up to here the reduction by parts of pi/2 is exact to the last place that counts.
constexpr float kModeratePhase = 8192.0f;

// Of |x| <= kModeratePhase: at most 1e-7 off. NaN gives NaN.
TWINBENCH_HOST_DEVICE SineCosine<float> moderate_sine_cosine(float x) {
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits: n = round(x / (pi / 2)).
  const float shifted = x * 0.636619772f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  // pi / 2 in three parts; the first two have so few bits that n times them is exact.
  float r = multiply_add(n, -1.5703125f, x);
  r = multiply_add(n, -4.837512969970703e-4f, r);
  r = multiply_add(n, -7.549789415861596e-8f, r);
  const float s = r * r;
  float odd = -1.951601167e-04f;
  odd = multiply_add(odd, s, 8.332168924e-03f);
  odd = multiply_add(odd, s, -1.666665480e-01f);
  const float sine = multiply_add(odd * s, r, r);
  float even = 2.443700756e-05f;
  even = multiply_add(even, s, -1.388735536e-03f);
  even = multiply_add(even, s, 4.166664663e-02f);
  const float cosine = multiply_add(even * s, s, multiply_add(s, -0.5f, 1.0f));
  // The quarter turns, in bits: they swap the two for odd n, and bit 1 of n and of n + 1 are their signs.
  const std::uint32_t quarter = bits_of(shifted);
  const bool swapped = (quarter & 1u) != 0;
  const float first = swapped ? cosine : sine, second = swapped ? sine : cosine;
  return {float_of_bits(bits_of(first) ^ ((quarter & 2u) << 30)),
          float_of_bits(bits_of(second) ^ (((quarter + 1u) & 2u) << 30))};
}

TWINBENCH_HOST_DEVICE SineCosine<double> sine_cosine(double x) { return {std::sin(x), std::cos(x)}; }
TWINBENCH_HOST_DEVICE SineCosine<double> moderate_sine_cosine(double x) { return sine_cosine(x); }
TWINBENCH_HOST_DEVICE SineCosine<float> sine_cosine(float x) {
#if defined(__CUDA_ARCH__)
  SineCosine<float> result;
  ::sincosf(x, &result.sine, &result.cosine);
  return result;
#else
  if (absolute(x) <= kModeratePhase) return moderate_sine_cosine(x);
  return {std::sin(x), std::cos(x)};
#endif
}

}  // namespace twinbench::kernels
