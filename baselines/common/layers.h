// Layers that baselines share: the linear layer in either numeric mode, and GELU without a team of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace twinbench {

// x [rows, in], weight [out, in], bias [out] -> [rows, out]. `round`: both operands of every product, forward and
// backward, are rounded to bf16; the weight comes already rounded.
at::Tensor baseline_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool round);

// x [rows, in], weight [out, in] -> [rows, out]. `round`: of bf16 operands with an fp32 result, forward and backward,
// as tensor cores multiply them; on a CPU, which rarely has such products, of the rounded operands in fp32.
at::Tensor library_product(const at::Tensor& x, const at::Tensor& weight, bool round);

// The values as bf16 holds them where `round`; their gradient passes as it is.
at::Tensor baseline_operand(const at::Tensor& values, bool round);
// The values as they are; where `round`, their gradient as bf16 holds it: an operand of the products behind them.
at::Tensor baseline_gradient(const at::Tensor& values, bool round);

// While it lives, ATen computes GELU itself. oneDNN, its default, wakes every thread for as little as 32 values: 2 us
// on an idle machine, milliseconds on a busy one. That would be a second sin beside the one this baseline is here to
// show.
class WithoutOneDnn {
 public:
  WithoutOneDnn();
  ~WithoutOneDnn();
  WithoutOneDnn(const WithoutOneDnn&) = delete;
  WithoutOneDnn& operator=(const WithoutOneDnn&) = delete;

 private:
  bool before_;
};

}  // namespace twinbench
