// Schemas and Meta implementations of the custom operators, and their registration.
#include "optimized/common/operators.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "src/common/error.h"
#include "src/common/nearest_name.h"
#include "src/inputs.h"

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

// The results' shapes and dtypes without their values, for tensors whose sizes may be symbols.
class MetaForward final : public c10::OperatorKernel {
 public:
  explicit MetaForward(std::string component) : signature_(find_component(component).spec.signature) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) const {
    const auto arguments = arguments_of(op.schema(), *stack);
    const NamedTensors inputs = operators::tensors_of(op.schema().arguments(), arguments);
    std::map<std::string, std::int64_t> given;
    for (const auto& size : operators::untold_sizes(signature_))
      given[size] = arguments[static_cast<std::size_t>(*op.schema().argumentIndexWithName(size))].toInt();
    const at::Tensor* like = &inputs.begin()->second;  // the first that has the numeric mode's dtype, where one has
    for (const auto& [name, tensor] : inputs)
      if (!like->is_floating_point() && tensor.is_floating_point()) like = &tensor;
    const std::function<c10::SymInt(const std::string&)> size_of = [&](const std::string& symbol) {
      const auto found = given.find(symbol);
      return found == given.end() ? length(symbol, inputs, size_of) : c10::SymInt(found->second);
    };
    NamedTensors results;
    for (const auto& output : signature_.outputs) {
      std::vector<c10::SymInt> shape;
      for (const auto& extent : output.shape) shape.push_back(extent.evaluate_symbolic(size_of));
      const bool wide = like->scalar_type() == at::kDouble;
      const auto dtype = scalar_type(output.element, wide ? Dtype::kFp64 : Dtype::kFp32);
      results.set(output.name, at::empty_symint(shape, like->options().dtype(dtype)));
    }
    operators::return_results(op.schema(), results, stack);
  }

 private:
  c10::SymInt length(const std::string& symbol, const NamedTensors& inputs,
                     const std::function<c10::SymInt(const std::string&)>& size_of) const {
    for (const auto& input : signature_.inputs) {
      if (input.per == symbol) {  // as many as the list holds
        std::int64_t count = 0;
        while (inputs.contains(element(input.name, static_cast<std::size_t>(count)))) ++count;
        return count;
      }
      for (std::size_t axis = 0; input.per.empty() && axis < input.shape.size(); ++axis)
        if (input.shape[axis].symbol() == symbol) return inputs[input.name].sym_size(static_cast<std::int64_t>(axis));
    }
    for (const auto& derived : signature_.derived)
      if (derived.name == symbol) return derived.value.evaluate_symbolic(size_of);
    throw Error(ErrorKind::kInternal, "size", symbol, "no tensor's length tells it");
  }

  const Signature& signature_;
};

// A gradient looks like what it is the gradient of.
void meta_backward(const c10::OperatorHandle& op, Stack* stack) {
  NamedTensors gradients;
  for (const auto& [name, tensor] : operators::tensors_of(op.schema().arguments(), arguments_of(op.schema(), *stack)))
    gradients.set("grad_" + name, at::empty_symint(tensor.sym_sizes(), tensor.options()));
  operators::return_results(op.schema(), gradients, stack);
}

c10::Argument list_of_kept() { return {"kept", c10::ListType::ofTensors()}; }

FunctionSchema made_schema(const std::string& name, std::vector<c10::Argument> arguments,
                           std::vector<c10::Argument> results) {
  FunctionSchema schema(name, "", std::move(arguments), std::move(results));
  schema.setAliasAnalysis(c10::AliasAnalysisKind::FROM_SCHEMA);
  return schema;
}

FunctionSchema keeping_schema(const FunctionSchema& forward) {
  std::vector<c10::Argument> results = forward.returns();
  results.push_back(list_of_kept());
  return made_schema(forward.name() + "_keeping", forward.arguments(), std::move(results));
}

// `from_kept`: takes what the forward pass kept, too.
FunctionSchema backward_schema(const FunctionSchema& forward, const std::vector<std::string>& not_differentiable,
                               bool from_kept) {
  const auto add_gradient = [&](std::vector<c10::Argument>& list, const c10::Argument& of) {
    const auto found = std::find(not_differentiable.begin(), not_differentiable.end(), of.name());
    if (found == not_differentiable.end() && holds_tensors(of)) list.emplace_back("grad_" + of.name(), of.type());
  };
  std::vector<c10::Argument> arguments, gradients;
  for (const auto& result : forward.returns()) add_gradient(arguments, result);
  if (from_kept) arguments.push_back(list_of_kept());
  arguments.insert(arguments.end(), forward.arguments().begin(), forward.arguments().end());
  for (const auto& argument : forward.arguments()) add_gradient(gradients, argument);
  return made_schema(forward.name() + (from_kept ? "_backward_kept" : "_backward"), std::move(arguments),
                     std::move(gradients));
}

}  // namespace

std::vector<std::string> operators::untold_sizes(const Signature& signature) {
  std::vector<std::string> names;
  for (const auto& size : signature.sizes) {
    const bool told = std::any_of(signature.inputs.begin(), signature.inputs.end(), [&](const InputSpec& input) {
      return input.per == size.name ||
             std::any_of(input.shape.begin(), input.shape.end(),
                         [&](const Expression& extent) { return extent.symbol() == size.name; });
    });
    if (!told) names.push_back(size.name);
  }
  return names;
}

NamedTensors operators::tensors_of(c10::ArrayRef<c10::Argument> names, c10::ArrayRef<IValue> arguments) {
  NamedTensors tensors;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = names[i].name();
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
    while (results.contains(element(result.name(), list.size())))
      list.push_back(results[element(result.name(), list.size())]);
    stack->emplace_back(std::move(list));
  }
}

namespace {

std::string text_of(double value) {
  char buffer[32];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  return text.find_first_of(".e") == std::string::npos ? text + "." : text;
}

std::string argument_of(const OptionSpec& option) {
  switch (option.kind) {
    case OptionSpec::Kind::kSwitch: return "bool " + option.name + (option.otherwise != 0 ? "=True" : "=False");
    case OptionSpec::Kind::kCount:
      return "int " + option.name + "=" + std::to_string(static_cast<std::int64_t>(option.otherwise));
    case OptionSpec::Kind::kReal: return "float " + option.name + "=" + text_of(option.otherwise);
    case OptionSpec::Kind::kChoice:
      return "str " + option.name + "=\"" + option.choices[static_cast<std::size_t>(option.otherwise)] + "\"";
  }
  throw Error(ErrorKind::kInternal, "option", option.name, "a kind that schemas do not know");
}

std::string schema_text(const std::string& name, const ComponentSpec& spec) {
  std::string arguments, results;
  for (const auto& input : spec.signature.inputs)
    arguments +=
        (arguments.empty() ? "" : ", ") + std::string(input.per.empty() ? "Tensor " : "Tensor[] ") + input.name;
  arguments += ", *";
  for (const auto& size : operators::untold_sizes(spec.signature)) arguments += ", int " + size;
  for (const auto& option : spec.signature.options)
    if (!option.of_inputs) arguments += ", " + argument_of(option);
  const auto& modes = spec.dtypes;
  if (std::find(modes.begin(), modes.end(), Dtype::kBf16) != modes.end()) arguments += ", bool bf16_products=False";
  for (const auto& output : spec.signature.outputs)
    results += (results.empty() ? "Tensor " : ", Tensor ") + output.name;
  return name + "(" + arguments + ") -> (" + results + ")";
}

// Arguments and results that the backward pass has no gradient of.
std::vector<std::string> not_differentiable(const Signature& signature) {
  std::vector<std::string> names;
  for (const auto& input : signature.inputs)
    if (!input.differentiable) names.push_back(input.name);
  for (const auto& output : signature.outputs)
    if (!output.gradient) names.push_back(output.name);
  return names;
}

}  // namespace

bool is_tensor_operator(const Component& component) {
  const auto& signature = component.spec.signature;
  const auto known = [](const auto& tensor) {
    return std::none_of(tensor.shape.begin(), tensor.shape.end(),
                        [](const Expression& extent) { return extent.is_any(); });
  };
  // PyTorch 2.11 knows no operator of more (DispatchKeyExtractor.h): the whole forward pass has 69.
  constexpr std::size_t kMostArguments = 64;
  const auto options = std::count_if(signature.options.begin(), signature.options.end(),
                                     [](const OptionSpec& option) { return !option.of_inputs; });
  const std::size_t arguments =
      signature.inputs.size() + operators::untold_sizes(signature).size() + static_cast<std::size_t>(options);
  // A gradient by a convention of the specification is not the derivative that PyTorch's users expect.
  return component.has_kernel && !component.spec.custom_gradient && arguments <= kMostArguments &&
         std::all_of(signature.inputs.begin(), signature.inputs.end(), known) &&
         std::all_of(signature.outputs.begin(), signature.outputs.end(), known) && !signature.has_state();
}

void register_operator(torch::Library& library, const ComponentSpec& spec) {
  const std::string name = spec.pipeline + "_" + spec.name, id = spec.id();
  const std::string backward = name + "_backward", keeping = name + "_keeping", backward_kept = backward + "_kept";
  const auto forward_schema = torch::schema(schema_text(name, spec).c_str());
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  library.def(FunctionSchema(forward_schema), tags);
  const auto constant = not_differentiable(spec.signature);
  library.def(backward_schema(forward_schema, constant, false), tags);
  library.def(keeping_schema(forward_schema), tags);
  library.def(backward_schema(forward_schema, constant, true), tags);

  std::vector<c10::DeviceType> devices = {c10::DeviceType::CPU};
#ifdef TWINBENCH_WITH_CUDA
  devices.push_back(c10::DeviceType::CUDA);
#endif
  for (const auto device : devices) {
    const auto key = device == c10::DeviceType::CPU ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA;
    operators::ComputeFunctions functions = operators::compute_functions(id, device);
    library.impl(name.c_str(), torch::dispatch(key, std::move(functions.forward)));
    library.impl(backward.c_str(), torch::dispatch(key, std::move(functions.backward)));
    library.impl(keeping.c_str(), torch::dispatch(key, std::move(functions.keeping)));
    library.impl(backward_kept.c_str(), torch::dispatch(key, std::move(functions.backward_kept)));
  }
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Meta, torch::CppFunction::makeFromBoxedFunctor(
                                                                         std::make_unique<MetaForward>(id))));
  library.impl(backward.c_str(),
               torch::dispatch(c10::DispatchKey::Meta, torch::CppFunction::makeFromBoxedFunction<&meta_backward>()));
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Autograd, operators::autograd_function()));
  for (const auto key : {c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA})
    library.impl(name.c_str(), torch::dispatch(key, operators::autocast_function()));
  // Gradients of gradients are refused by name.
  for (const auto& gradients : {backward, backward_kept})
    library.impl(gradients.c_str(),
                 torch::dispatch(c10::DispatchKey::Autograd, torch::autograd::autogradNotImplementedFallback()));
}

TORCH_LIBRARY_FRAGMENT(twinbench, library) {
  for (const auto& component : components())
    if (is_tensor_operator(component)) register_operator(library, component.spec);
}

}  // namespace twinbench
