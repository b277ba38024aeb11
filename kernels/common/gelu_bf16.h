// GELU of values that are rounded to bf16 next: eight instructions where the exact form takes about 25.
#pragma once

#include "kernels/common/math.h"
#include "kernels/common/simt.h"

namespace twinbench::kernels {

// x / 2 * (1 + tanh(x * P(x^2))), P fitted so that the distance to the exact form is at most 2.6e-5 everywhere. On the
// device tanh is one instruction with a relative error of 2^-11 (PTX ISA, tanh.approx), which adds at most
// 2.5e-4 * |x|: together an eighth of what rounding a value of that size to bf16 costs. -infinity gives NaN, as there.
TWINBENCH_DEVICE float gelu_before_bf16(float x) {
  const float square = x * x;
  const float bounded = square > 36.0f ? 36.0f : square;  // tanh is 1 from there on; NaN passes by way of x
  float p = -3.51517324e-04f;
  p = multiply_add(p, bounded, 3.70056495e-02f);
  p = multiply_add(p, bounded, 7.97507880e-01f);
#if defined(__CUDA_ARCH__)
  float t;
  asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(x * p));
#else
  const float t = tanh(x * p);
#endif
  const float half = 0.5f * x;
  return multiply_add(half, t, half);
}

}  // namespace twinbench::kernels
