// Two values rounded to bf16 in one word, as tensor-core operands take them: one instruction on the device.
#pragma once

#include "kernels/common/float_bits.h"
#include "kernels/common/simt.h"

namespace twinbench::kernels {

// `low` in the lower half. As bf16_bits, but for NaN, whose payload and sign the device does not keep.
TWINBENCH_DEVICE std::uint32_t bf16_pair(float low, float high) {
#if defined(__CUDA_ARCH__)
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  return bf16_bits(low) | std::uint32_t{bf16_bits(high)} << 16;
#endif
}
TWINBENCH_DEVICE float low_of_pair(std::uint32_t word) { return float_of_bits(word << 16); }
TWINBENCH_DEVICE float high_of_pair(std::uint32_t word) { return float_of_bits(word & 0xffff0000u); }

}  // namespace twinbench::kernels
