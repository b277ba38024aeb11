// One rounding for a product and a sum, on every device.
#pragma once

#include "src/common/host_device.h"

namespace twinbench::kernels {

// a * b + c in one rounding everywhere, so the same bits in every clone of a loop (see cpu_clones.h) and on every
// device, unlike multiply_add; half the instructions of a product where there are fused ones, a call elsewhere.
TWINBENCH_HOST_DEVICE float fused(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
TWINBENCH_HOST_DEVICE double fused(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

}  // namespace twinbench::kernels
