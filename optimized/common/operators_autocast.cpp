// The Autocast implementation that all custom operators share: what operators before it have left in bf16 or fp16 is
// widened to fp32, exactly. In the specifications' BF16 mode products take bf16 operands and give fp32 results, and all
// else is fp32: an operator is told of that mode by its own bf16_products, and rounds what it multiplies itself.
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "optimized/common/operators.h"

namespace twinbench {
namespace {

at::Tensor widened(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return type == at::kBFloat16 || type == at::kHalf ? tensor.to(at::kFloat) : tensor;
}

void call_widened(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard without_autocast(c10::autocast_dispatch_keyset);
  const std::size_t first = stack->size() - op.schema().arguments().size();
  for (std::size_t i = first; i < stack->size(); ++i) {
    c10::IValue& argument = (*stack)[i];
    if (argument.isTensor()) {
      argument = widened(argument.toTensor());
    } else if (argument.isTensorList()) {
      std::vector<at::Tensor> list = argument.toTensorVector();
      for (at::Tensor& one : list) one = widened(one);
      argument = std::move(list);
    }
  }
  op.callBoxed(stack);
}

}  // namespace

torch::CppFunction operators::autocast_function() { return torch::CppFunction::makeFromBoxedFunction<&call_widened>(); }

}  // namespace twinbench
