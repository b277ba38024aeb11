// Layers that baselines share: the linear layer in either numeric mode, and GELU without a team of threads.
#pragma once

#include <ATen/Context.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

namespace twinbench {

inline at::Tensor rounded_to_bf16(const at::Tensor& tensor) { return tensor.to(at::kBFloat16).to(at::kFloat); }

// Bf16 mode: both operands of every product, forward and backward, are rounded to bf16; products stay fp32. The weight
// comes already rounded. (Plain conversions on the tape would round the products of the backward pass instead.)
struct RoundedLinear : torch::autograd::Function<RoundedLinear> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
    const at::Tensor operand = rounded_to_bf16(x);
    context->save_for_backward({operand, weight});
    return at::linear(operand, weight, bias);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor gradient = rounded_to_bf16(gradients[0]);
    return {gradient.mm(saved[1]), gradient.t().mm(saved[0]), gradients[0].sum(0)};
  }
};

// x [rows, in], weight [out, in], bias [out] -> [rows, out].
inline at::Tensor baseline_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool round) {
  return round ? RoundedLinear::apply(x, weight, bias) : at::linear(x, weight, bias);
}

// While it lives, ATen computes GELU itself. oneDNN, its default, wakes every thread for as little as 32 values: 2 us on an
// idle machine, milliseconds on a busy one. That would be a second sin beside the one this baseline is here to show.
class WithoutOneDnn {
 public:
  WithoutOneDnn() : before_(at::globalContext().userEnabledMkldnn()) { at::globalContext().setUserEnabledMkldnn(false); }
  ~WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(before_); }
  WithoutOneDnn(const WithoutOneDnn&) = delete;
  WithoutOneDnn& operator=(const WithoutOneDnn&) = delete;

 private:
  bool before_;
};

}  // namespace twinbench
