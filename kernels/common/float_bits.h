// Bit patterns of floats, multiply-add, and rounding to bfloat16: the parts math.h is built from. Host and device.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "src/common/host_device.h"

namespace twinbench::kernels {

TWINBENCH_HOST_DEVICE std::uint32_t bits_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

TWINBENCH_HOST_DEVICE float float_of_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

// a * b + c. One rounding on the device and in host files built with FMA instructions, two roundings otherwise
// (so in every clone of TWINBENCH_CPU_CLONES, which therefore all give the same bits).
TWINBENCH_HOST_DEVICE float multiply_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#elif defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

TWINBENCH_HOST_DEVICE double multiply_add(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#elif defined(__FMA__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

TWINBENCH_HOST_DEVICE float absolute(float x) { return float_of_bits(bits_of(x) & 0x7fffffffu); }
TWINBENCH_HOST_DEVICE double absolute(double x) { return x < 0 ? -x : x; }

// Magnitude of `magnitude` with the sign bit of `sign`; NaN stays NaN.
TWINBENCH_HOST_DEVICE float with_sign_of(float magnitude, float sign) {
  return float_of_bits((bits_of(magnitude) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}

// The upper 16 bits of the float nearest to x that bfloat16 can hold: round to nearest, ties to even. Overflow gives
// infinity as IEEE rounding does; NaN stays a (quiet) NaN of the same sign.
TWINBENCH_HOST_DEVICE std::uint16_t bf16_bits(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>((is_nan ? (bits | 0x00400000u) : rounded) >> 16);
}

TWINBENCH_HOST_DEVICE float float_of_bf16_bits(std::uint16_t bits) {
  return float_of_bits(static_cast<std::uint32_t>(bits) << 16);
}

// x rounded to bfloat16, kept in a float.
TWINBENCH_HOST_DEVICE float round_to_bf16(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return float_of_bits((is_nan ? (bits | 0x00400000u) : rounded) & 0xffff0000u);
}
// By way of float. The numeric mode that rounds is one of fp32: here so that templates over both compile.
TWINBENCH_HOST_DEVICE double round_to_bf16(double x) { return round_to_bf16(static_cast<float>(x)); }

// An operand of a matrix product: rounded to bf16 in that mode.
TWINBENCH_HOST_DEVICE float operand(float x, bool round) { return round ? round_to_bf16(x) : x; }

}  // namespace twinbench::kernels
