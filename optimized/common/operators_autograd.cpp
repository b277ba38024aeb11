// The Autograd implementation that all custom operators share: records a call of <operator>_backward on the tape.
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <map>

#include "optimized/common/operators.h"

namespace twinbench {
namespace {

using c10::IValue;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::jit::Stack;

// The operator beside `forward` whose name ends so: _backward, _keeping, _backward_kept.
c10::OperatorHandle beside(const c10::FunctionSchema& forward, const char* ending) {
  return c10::Dispatcher::singleton().findSchemaOrThrow((forward.name() + ending).c_str(), "");
}

bool is_list(const c10::Argument& argument) { return argument.type()->kind() == c10::TypeKind::ListType; }
bool is_tensor(const c10::Argument& argument) { return argument.type()->kind() == c10::TypeKind::TensorType; }

struct RecordedCall : torch::autograd::Function<RecordedCall> {
  // `tensors`: all that are among the arguments, in order. The tape keeps these, the scalars and what the forward pass
  // keeps for the backward pass; nothing of that where the call is traced rather than computed.
  static variable_list forward(AutogradContext* context, at::TensorList tensors, const c10::OperatorHandle& op,
                               const Stack& arguments) {
    const auto& schema = op.schema();
    Stack stack = arguments;
    variable_list saved = tensors.vec();
    if (at::areAnyTensorSubclassLike(tensors)) {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      op.callBoxed(&stack);
    } else {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      beside(schema, "_keeping").callBoxed(&stack);
      const variable_list kept = torch::jit::pop(stack).toTensorVector();
      saved.insert(saved.end(), kept.begin(), kept.end());
    }
    variable_list results, constant;
    const auto& backward = beside(schema, "_backward").schema();
    for (std::size_t i = 0; i < stack.size(); ++i) {
      results.push_back(stack[i].toTensor());
      if (!backward.argumentIndexWithName("grad_" + schema.returns()[i].name())) constant.push_back(results.back());
    }
    context->mark_non_differentiable(constant);
    context->save_for_backward(std::move(saved));
    context->saved_data["operator"] = schema.name();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      if (is_list(argument))
        context->saved_data[argument.name()] = static_cast<std::int64_t>(arguments[i].toTensorList().size());
      else if (!is_tensor(argument))
        context->saved_data[argument.name()] = arguments[i];
    }
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& schema = c10::Dispatcher::singleton()
                             .findSchemaOrThrow(context->saved_data["operator"].toStringRef().c_str(), "")
                             .schema();
    const variable_list saved = context->get_saved_variables();
    std::size_t given = 0;
    for (const auto& argument : schema.arguments())
      given += is_tensor(argument) ? 1
               : is_list(argument) ? static_cast<std::size_t>(context->saved_data[argument.name()].toInt())
                                   : 0;
    const variable_list kept(saved.begin() + static_cast<std::ptrdiff_t>(given), saved.end());
    const c10::OperatorHandle op = beside(schema, kept.empty() ? "_backward" : "_backward_kept");
    Stack stack;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (op.schema().argumentIndexWithName("grad_" + schema.returns()[i].name())) stack.emplace_back(gradients[i]);
    if (!kept.empty()) stack.emplace_back(kept);
    auto next = saved.begin();
    for (const auto& argument : schema.arguments()) {
      if (is_tensor(argument)) {
        stack.emplace_back(*next++);
      } else if (is_list(argument)) {
        const auto end = next + context->saved_data[argument.name()].toInt();
        stack.emplace_back(std::vector<at::Tensor>(next, end));
        next = end;
      } else {
        stack.push_back(context->saved_data[argument.name()]);
      }
    }
    op.callBoxed(&stack);
    return of_inputs(schema, op.schema(), stack, context);
  }

 private:
  // One gradient for each tensor that forward() got, undefined where there is none; and for its other two parameters.
  static variable_list of_inputs(const c10::FunctionSchema& forward, const c10::FunctionSchema& backward,
                                 const Stack& results, AutogradContext* context) {
    std::map<std::string, IValue> by_name;
    for (std::size_t i = 0; i < results.size(); ++i) by_name[backward.returns()[i].name()] = results[i];
    variable_list list;
    for (const auto& argument : forward.arguments()) {
      const auto found = by_name.find("grad_" + argument.name());
      if (is_tensor(argument)) {
        list.push_back(found == by_name.end() ? at::Tensor() : found->second.toTensor());
      } else if (is_list(argument)) {
        const auto count = static_cast<std::size_t>(context->saved_data[argument.name()].toInt());
        const auto part = found == by_name.end() ? variable_list(count) : found->second.toTensorVector();
        list.insert(list.end(), part.begin(), part.end());
      }
    }
    list.resize(list.size() + 2);
    return list;
  }
};

// Whether anything has a gradient or a tangent to follow.
bool is_followed(const variable_list& tensors) {
  return torch::autograd::isFwGradDefinedTensorList(tensors) ||
         (c10::GradMode::is_enabled() &&
          std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) { return tensor.requires_grad(); }));
}

void record(const c10::OperatorHandle& op, Stack* stack) {
  const std::size_t count = op.schema().arguments().size();
  variable_list tensors;
  for (const auto& argument : torch::jit::last(*stack, count)) {
    if (argument.isTensor()) tensors.push_back(argument.toTensor());
    if (!argument.isTensorList()) continue;
    for (const IValue& tensor : argument.toListRef()) tensors.push_back(tensor.toTensor());
  }
  if (!is_followed(tensors)) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return op.callBoxed(stack);
  }
  const Stack arguments = torch::jit::pop(*stack, count);
  for (auto& result : RecordedCall::apply(at::TensorList(tensors), op, arguments))
    stack->emplace_back(std::move(result));
}

}  // namespace

torch::CppFunction operators::autograd_function() { return torch::CppFunction::makeFromBoxedFunction<&record>(); }

}  // namespace twinbench
