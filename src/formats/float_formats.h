// Half-width floating-point formats to and from fp32: exact widening, and narrowing to nearest with ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace twinbench {

inline float widen_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// A NaN stays a NaN and keeps its upper payload, so that bf16 -> fp32 -> bf16 returns the same bits for every value.
inline std::uint16_t narrow_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
    const auto upper = static_cast<std::uint16_t>(bits >> 16);
    return (upper & 0x7Fu) != 0 ? upper : static_cast<std::uint16_t>(upper | 0x40u);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline float widen_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu, fraction = bits & 0x3FFu;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, exact in fp32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t widened = exponent == 0x1Fu ? 0xFFu : exponent + 112u;  // 127 - 15
  return std::bit_cast<float>(sign | (widened << 23) | (fraction << 13));
}

}  // namespace twinbench
