// Tensor-core tiles of half precision, beside simt_mma.h's: operands of eleven bits, as many as TF32's, at twice the
// rate and in half the bytes. Whoever multiplies keeps them within half's range.
#pragma once

#include "kernels/common/half_bits.h"
#include "kernels/common/simt_mma.h"

namespace twinbench::kernels {

// Two values rounded to half precision in one word, `low` in the lower half. NaN stays NaN.
TWINBENCH_DEVICE std::uint32_t half_pair(float low, float high) {
#if defined(__CUDA_ARCH__)
  std::uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  const auto bits = [](float x) {
    const float half = round_to_half(x), size = absolute(half);
    const std::uint32_t sign = bits_of(half) >> 16 & 0x8000u;
    if (!(size < INFINITY)) return sign | (size == INFINITY ? 0x7c00u : 0x7e00u);
    return sign | bits_of(size * 0x1p-112f) >> 13;  // the same digits under half's bias, subnormal ones too
  };
  return bits(low) | bits(high) << 16;
#endif
}

namespace simt {

// sum += left * right, 16 x 8 x 16 in half precision, added in fp32: fragments as multiply_bf16's.
template <class Block>
TWINBENCH_DEVICE void multiply_half(Block& block, TileSum& sum, const LeftTile& left, const RightTile& right) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum.of[0]), "+f"(sum.of[1]), "+f"(sum.of[2]), "+f"(sum.of[3])
      : "r"(left.of[0]), "r"(left.of[1]), "r"(left.of[2]), "r"(left.of[3]), "r"(right.of[0]), "r"(right.of[1]));
#else
  host_multiply_half(block, sum, left, right);
#endif
}

}  // namespace simt
}  // namespace twinbench::kernels
