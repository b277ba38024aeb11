// The Autograd implementation that all custom operators share: records a call of <operator>_backward on the tape.
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

c10::OperatorHandle backward_of(const c10::FunctionSchema& forward) {
  return c10::Dispatcher::singleton().findSchemaOrThrow((forward.name() + "_backward").c_str(), "");
}

bool is_list(const c10::Argument& argument) { return argument.type()->kind() == c10::TypeKind::ListType; }
bool is_tensor(const c10::Argument& argument) { return argument.type()->kind() == c10::TypeKind::TensorType; }

struct RecordedCall : torch::autograd::Function<RecordedCall> {
  // `tensors`: all that are among the arguments, in order. The tape keeps these and the scalars, nothing else.
  static variable_list forward(AutogradContext* context, at::TensorList tensors, const c10::OperatorHandle& op,
                               const Stack& arguments) {
    const auto& schema = op.schema();
    Stack stack = arguments;
    {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      op.callBoxed(&stack);
    }
    variable_list results, constant;
    const auto& backward = backward_of(schema).schema();
    for (std::size_t i = 0; i < stack.size(); ++i) {
      results.push_back(stack[i].toTensor());
      if (!backward.argumentIndexWithName("grad_" + schema.returns()[i].name())) constant.push_back(results.back());
    }
    context->mark_non_differentiable(constant);
    context->save_for_backward(tensors.vec());
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
    const c10::OperatorHandle op = backward_of(schema);
    Stack stack;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (op.schema().argumentIndexWithName("grad_" + schema.returns()[i].name())) stack.emplace_back(gradients[i]);
    const variable_list saved = context->get_saved_variables();
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
