// Matrix products by the library, the same on both paths.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>

namespace twinbench {

// out = a b (batched where they have three axes); bf16 operands are accumulated and returned in fp32.
inline void multiply(at::Tensor out, const at::Tensor& a, const at::Tensor& b) {
  const bool batched = a.dim() == 3;
  if (a.scalar_type() != at::kBFloat16)
    batched ? at::bmm_out(out, a, b) : at::mm_out(out, a, b);
  else
    batched ? at::bmm_out(out, a, b, at::kFloat) : at::mm_out(out, a, b, at::kFloat);
}

}  // namespace twinbench
