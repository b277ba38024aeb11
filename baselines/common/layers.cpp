// The baselines' linear layer on the tape in bf16 mode, and the switch of oneDNN.
#include "baselines/common/layers.h"

#include <ATen/Context.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include "src/rounding.h"

namespace twinbench {
namespace {

// Products stay as wide as their operands are. (Plain conversions on the tape would round the products of the backward
// pass instead.)
struct RoundedLinear : torch::autograd::Function<RoundedLinear> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
    const at::Tensor operand = rounded(x, Dtype::kBf16);
    context->save_for_backward({operand, weight});
    return at::linear(operand, weight, bias);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor gradient = rounded(gradients[0], Dtype::kBf16);
    return {gradient.mm(saved[1]), gradient.t().mm(saved[0]), gradients[0].sum(0)};
  }
};

// left [m, k] x right [k, n], both fp32 that hold values of bf16.
at::Tensor bf16_product(const at::Tensor& left, const at::Tensor& right) {
  if (!left.is_cuda()) return left.mm(right);
  return at::mm(left.to(at::kBFloat16), right.to(at::kBFloat16), at::kFloat);
}

struct Bf16Product : torch::autograd::Function<Bf16Product> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor operand = rounded(x, Dtype::kBf16);
    context->save_for_backward({operand, weight});
    return bf16_product(operand, weight.t());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor gradient = rounded(gradients[0], Dtype::kBf16);
    return {bf16_product(gradient, saved[1]), bf16_product(gradient.t(), saved[0])};
  }
};

struct RoundedOperand : torch::autograd::Function<RoundedOperand> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& values) {
    return rounded(values, Dtype::kBf16);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0]};
  }
};

struct RoundedGradient : torch::autograd::Function<RoundedGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& values) {
    return values.view_as(values);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {rounded(gradients[0], Dtype::kBf16)};
  }
};

}  // namespace

at::Tensor baseline_gradient(const at::Tensor& values, bool round) {
  return round ? RoundedGradient::apply(values) : values;
}

at::Tensor baseline_operand(const at::Tensor& values, bool round) {
  return round ? RoundedOperand::apply(values) : values;
}

at::Tensor library_product(const at::Tensor& x, const at::Tensor& weight, bool round) {
  return round ? Bf16Product::apply(x, weight) : x.mm(weight.t());
}

at::Tensor baseline_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool round) {
  return round ? RoundedLinear::apply(x, weight, bias) : at::linear(x, weight, bias);
}

WithoutOneDnn::WithoutOneDnn() : before_(at::globalContext().userEnabledMkldnn()) {
  at::globalContext().setUserEnabledMkldnn(false);
}
WithoutOneDnn::~WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(before_); }

}  // namespace twinbench
