// Matrix products by the library, the same on every path.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

namespace twinbench {

// out = a b (batched where they have three axes); bf16 operands are accumulated and returned in fp32, on the CPU too,
// whose library does not offer that. With `tf32` a card's tensor cores may take fp32 operands, rounded as they like;
// the CPU has none and multiplies exactly.
void multiply(at::Tensor out, const at::Tensor& a, const at::Tensor& b, bool tf32 = false);

// out = a b + bias in fp32, bias [columns]: on a card in one kernel, of cuBLASLt, which on an H200 also chose better
// tiles for few rows and for a transformer's widths than the plain product.
void multiply_and_add(at::Tensor out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias);

}  // namespace twinbench
