// Schemas, Meta, CPU and CUDA implementations of the custom operators, made from their definitions.
#include "optimized/common/operators.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>

#include <algorithm>

#include "src/common/error.h"
#include "src/registry.h"

namespace twinbench {
namespace {

using c10::FunctionSchema;
using c10::IValue;
using torch::jit::Stack;

bool holds_tensors(const c10::Argument& argument) {
  return argument.type()->kind() == c10::TypeKind::TensorType || argument.type()->kind() == c10::TypeKind::ListType;
}

std::string element(const std::string& list, std::size_t i) { return list + "_" + std::to_string(i); }

c10::ArrayRef<IValue> arguments_of(const FunctionSchema& schema, const Stack& stack) {
  return torch::jit::last(stack, schema.arguments().size());
}

// What a Runnable is made for: the numeric mode and the options, from the call's scalars and its tensors' dtype.
Setting setting_of(const FunctionSchema& schema, c10::ArrayRef<IValue> arguments, const NamedTensors& inputs, Pass pass) {
  Setting setting;
  setting.input_case.pass = pass;
  const auto& [first_name, first] = *inputs.begin();
  setting.device = first.device();
  for (const auto& [name, tensor] : inputs)
    if (tensor.device() != setting.device)
      throw Error(ErrorKind::kBadArgument, name, tensor.device().str(), first_name + " is on " + setting.device.str());
  bool bf16 = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (holds_tensors(argument)) continue;
    if (argument.name() == "bf16_products")
      bf16 = arguments[i].toBool();
    else
      setting.input_case.options[argument.name()] = arguments[i].toScalar().toDouble();
  }
  const bool wide = first.scalar_type() == at::kDouble;
  setting.dtype = wide ? Dtype::kFp64 : bf16 ? Dtype::kBf16 : Dtype::kFp32;
  if (wide && bf16) throw Error(ErrorKind::kBadArgument, "bf16_products", "True", "give float32 tensors with it");
  if (wide && first.is_cuda()) throw Error(ErrorKind::kBadDtype, first_name, "Double", "on CUDA give float32 tensors");
  return setting;
}

// An operator's results share memory with nothing. A Runnable's may be views of one buffer, or of an input.
NamedTensors independent(const NamedTensors& results, const NamedTensors& inputs) {
  std::vector<const c10::StorageImpl*> taken;
  for (const auto& [name, tensor] : inputs) taken.push_back(tensor.storage().unsafeGetStorageImpl());
  NamedTensors owned;
  for (const auto& [name, tensor] : results) {
    const auto* storage = tensor.storage().unsafeGetStorageImpl();
    const bool alone = tensor.is_contiguous() && tensor.nbytes() == tensor.storage().nbytes() &&
                       std::find(taken.begin(), taken.end(), storage) == taken.end();
    owned.set(name, alone ? tensor : tensor.clone(at::MemoryFormat::Contiguous));
    taken.push_back(storage);
  }
  return owned;
}

// PyTorch's own error types, so that Python sees TypeError and ValueError.
[[noreturn]] void raise(const Error& error, const std::string& name) {
  const std::string message = name + ": " + error.what();
  switch (error.kind()) {
    case ErrorKind::kBadDtype: C10_THROW_ERROR(TypeError, message);
    case ErrorKind::kInternal: C10_THROW_ERROR(Error, message);
    default: C10_THROW_ERROR(ValueError, message);
  }
}

// CPU and CUDA: a Runnable of the optimized variant, run once.
class Compute final : public c10::OperatorKernel {
 public:
  Compute(std::string component, c10::DeviceType device, Pass pass)
      : component_(std::move(component)), device_(device), pass_(pass) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) const {
    const auto arguments = arguments_of(op.schema(), *stack);
    const NamedTensors inputs = operators::tensors_of(op.schema(), arguments);
    NamedTensors results;
    try {
      const Setting setting = setting_of(op.schema(), arguments, inputs, pass_);
      const auto runnable = find_component(component_).make(Variant::kOptimized, inputs, setting);
      runnable->run();
      results = runnable->outputs();
    } catch (const Error& error) {
      raise(error, op.schema().name());
    }
    operators::return_results(op.schema(), independent(results, inputs), stack);
  }

 private:
  std::string component_;
  c10::DeviceType device_;
  Pass pass_;
};

class MetaForward final : public c10::OperatorKernel {
 public:
  explicit MetaForward(NamedTensors (*empty_results)(const NamedTensors&)) : empty_results_(empty_results) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) const {
    const NamedTensors inputs = operators::tensors_of(op.schema(), arguments_of(op.schema(), *stack));
    operators::return_results(op.schema(), empty_results_(inputs), stack);
  }

 private:
  NamedTensors (*empty_results_)(const NamedTensors&);
};

// A gradient looks like what it is the gradient of.
void meta_backward(const c10::OperatorHandle& op, Stack* stack) {
  NamedTensors gradients;
  for (const auto& [name, tensor] : operators::tensors_of(op.schema(), arguments_of(op.schema(), *stack)))
    gradients.set("grad_" + name, at::empty_symint(tensor.sym_sizes(), tensor.options()));
  operators::return_results(op.schema(), gradients, stack);
}

FunctionSchema backward_schema(const FunctionSchema& forward, const std::vector<std::string>& not_differentiable) {
  const auto add_gradient = [&](std::vector<c10::Argument>& list, const c10::Argument& of) {
    const auto found = std::find(not_differentiable.begin(), not_differentiable.end(), of.name());
    if (found == not_differentiable.end() && holds_tensors(of)) list.emplace_back("grad_" + of.name(), of.type());
  };
  std::vector<c10::Argument> arguments, gradients;
  for (const auto& result : forward.returns()) add_gradient(arguments, result);
  arguments.insert(arguments.end(), forward.arguments().begin(), forward.arguments().end());
  for (const auto& argument : forward.arguments()) add_gradient(gradients, argument);
  FunctionSchema schema(forward.name() + "_backward", "", std::move(arguments), std::move(gradients));
  schema.setAliasAnalysis(c10::AliasAnalysisKind::FROM_SCHEMA);
  return schema;
}

template <class Kernel, class... Arguments>
torch::CppFunction boxed(c10::DispatchKey key, Arguments... arguments) {
  return torch::dispatch(key, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(arguments...)));
}

}  // namespace

NamedTensors operators::tensors_of(const FunctionSchema& schema, c10::ArrayRef<IValue> arguments) {
  NamedTensors tensors;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = schema.arguments()[i].name();
    if (arguments[i].isTensor()) tensors.set(name, arguments[i].toTensor());
    if (!arguments[i].isTensorList()) continue;
    const auto list = arguments[i].toTensorVector();
    for (std::size_t k = 0; k < list.size(); ++k) tensors.set(element(name, k), list[k]);
  }
  return tensors;
}

void operators::return_results(const FunctionSchema& schema, const NamedTensors& results, Stack* stack) {
  torch::jit::drop(*stack, schema.arguments().size());
  for (const auto& result : schema.returns()) {
    if (result.type()->kind() == c10::TypeKind::TensorType) {
      stack->emplace_back(results[result.name()]);
      continue;
    }
    std::vector<at::Tensor> list;
    while (results.contains(element(result.name(), list.size()))) list.push_back(results[element(result.name(), list.size())]);
    stack->emplace_back(std::move(list));
  }
}

void register_operator(torch::Library& library, const OperatorDefinition& definition) {
  std::string name = definition.component;
  std::replace(name.begin(), name.end(), '.', '_');
  const std::string backward = name + "_backward";
  const auto forward_schema = torch::schema((name + "(" + definition.arguments + ") -> (" + definition.results + ")").c_str());
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  library.def(backward_schema(forward_schema, definition.not_differentiable), tags);
  library.def(FunctionSchema(forward_schema), tags);

  std::vector<c10::DeviceType> devices = {c10::DeviceType::CPU};
#ifdef TWINBENCH_WITH_CUDA
  devices.push_back(c10::DeviceType::CUDA);
#endif
  for (const auto device : devices) {
    const auto key = device == c10::DeviceType::CPU ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA;
    library.impl(name.c_str(), boxed<Compute>(key, definition.component, device, Pass::kForward));
    library.impl(backward.c_str(), boxed<Compute>(key, definition.component, device, Pass::kBackward));
  }
  library.impl(name.c_str(), boxed<MetaForward>(c10::DispatchKey::Meta, definition.empty_results));
  library.impl(backward.c_str(),
               torch::dispatch(c10::DispatchKey::Meta, torch::CppFunction::makeFromBoxedFunction<&meta_backward>()));
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Autograd, operators::autograd_function()));
  // Gradients of gradients are refused by name.
  library.impl(backward.c_str(), torch::dispatch(c10::DispatchKey::Autograd, torch::autograd::autogradNotImplementedFallback()));
}

}  // namespace twinbench
