// Neighbouring values that are stored in bf16, read as floats: one access of two bytes a value.
#pragma once

#include "kernels/common/vectors.h"

namespace twinbench::kernels {

template <int kWidth>
TWINBENCH_DEVICE Floats<kWidth> load_bf16(const std::uint16_t* from) {
  static_assert(kWidth == 2 || kWidth == 4);
  check_alignment<std::uint16_t, kWidth>(from);
  Vector<std::uint32_t, kWidth / 2> pairs;
#if defined(__CUDA_ARCH__)
  if constexpr (kWidth == 4)
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(pairs.of[0]), "=r"(pairs.of[1]) : "l"(from));
  else
#endif
    pairs = *reinterpret_cast<const Vector<std::uint32_t, kWidth / 2>*>(from);
  Floats<kWidth> values;
  TWINBENCH_UNROLL
  for (int i = 0; i < kWidth / 2; ++i) {
    values.of[2 * i] = low_of_pair(pairs.of[i]);
    values.of[2 * i + 1] = high_of_pair(pairs.of[i]);
  }
  return values;
}

}  // namespace twinbench::kernels
