// IEEE half precision beside float_bits.h's bfloat16: rounding to it, and what its bits say. Host and device.
#pragma once

#include "kernels/common/float_bits.h"

namespace twinbench::kernels {

// x rounded to half precision (nearest, ties to even), kept in a float: subnormal halves too, infinity from 65520 on,
// NaN stays NaN. Without branches, so that a loop over it is vectorised.
TWINBENCH_HOST_DEVICE float round_to_half(float x) {
  const float size = absolute(x);
  // Adding 2^13 times the power of two below the value leaves a half's 10 bits behind the leading one: the sum's last
  // place is the half's. Exponents below the least normal half's, and above the largest's, are taken as those.
  constexpr std::uint32_t kLeast = 113u << 23, kMost = 142u << 23;
  const std::uint32_t exponent = bits_of(size) & 0x7f800000u, low = exponent < kLeast ? kLeast : exponent;
  const float large = float_of_bits((low > kMost ? kMost : low) + (13u << 23));
  const float rounded = (size + large) - large;
  const float half = rounded > 65504.0f ? float_of_bits(0x7f800000u) : rounded;
  return with_sign_of(half, x);
}

// The value of half-precision bits, exactly.
TWINBENCH_HOST_DEVICE float float_of_half_bits(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  const std::uint32_t magnitude = bits & 0x7fffu;
  // The same digits read with float's bias: 2^112 too small, whether normal or not.
  const float finite = float_of_bits(magnitude << 13) * 0x1p112f;
  const float size = magnitude >= 0x7c00u ? float_of_bits((magnitude << 13) | 0x7f800000u) : finite;
  return with_sign_of(size, float_of_bits(static_cast<std::uint32_t>(bits) << 16));
#endif
}

}  // namespace twinbench::kernels
