// Half precision against the compiler's own: every half's value, and rounding over every exponent, ties and neighbours.
#include "kernels/common/half_bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/common/simt_mma_half.h"

namespace twinbench::kernels {
namespace {

float compilers_half(float x) { return static_cast<float>(static_cast<_Float16>(x)); }

void expect_rounded(float x) {
  const float expected = compilers_half(x), got = round_to_half(x);
  if (std::isnan(x) && std::isnan(got)) return;
  ASSERT_EQ(bits_of(got), bits_of(expected)) << x << " gives " << got << " instead of " << expected;
}

TEST(HalfBits, EveryHalfHasItsValue) {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    _Float16 value;
    std::memcpy(&value, &half, sizeof value);
    const float expected = static_cast<float>(value), got = float_of_half_bits(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      continue;
    }
    ASSERT_EQ(bits_of(got), bits_of(expected)) << bits;
  }
}

TEST(HalfBits, RoundsAsTheCompilerDoes) {
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 4093)
    expect_rounded(float_of_bits(static_cast<std::uint32_t>(bits)));
  for (std::uint32_t bits = 0; bits < 0x7c00u; ++bits) {  // the middle between two halves, and beside it
    const float here = float_of_half_bits(static_cast<std::uint16_t>(bits)),
                next = float_of_half_bits(static_cast<std::uint16_t>(bits + 1));
    const float middle = std::isinf(next) ? 65520.0f : here + (next - here) / 2;
    for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
      expect_rounded(x);
      expect_rounded(-x);
    }
  }
}

TEST(HalfBits, PairsHoldTheRoundedBits) {
  const auto bits_of_half = [](float x) {
    const auto half = static_cast<_Float16>(x);
    std::uint16_t bits;
    std::memcpy(&bits, &half, sizeof bits);
    return std::uint32_t{bits};
  };
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 65521) {
    const float x = float_of_bits(static_cast<std::uint32_t>(bits));
    const std::uint32_t pair = half_pair(x, -x);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(float_of_half_bits(static_cast<std::uint16_t>(pair)))) << bits;
      continue;
    }
    ASSERT_EQ(pair, bits_of_half(x) | bits_of_half(-x) << 16) << bits;
  }
}

}  // namespace
}  // namespace twinbench::kernels
