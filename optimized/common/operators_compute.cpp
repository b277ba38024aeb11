// The CPU and CUDA implementation that all custom operators share: runs a set-up of the optimized variant, made in this
// call or kept from an earlier one.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "optimized/common/operator_cache.h"
#include "optimized/common/operators.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench {
namespace {

using c10::FunctionSchema;
using c10::IValue;
using operators::CallKey;
using operators::PreparedCall;
using torch::jit::Stack;
using Arguments = c10::ArrayRef<IValue>;

double option_value(const Signature& signature, const std::string& name, const IValue& value) {
  if (!value.isString()) return value.toScalar().toDouble();
  const auto& choices = signature.find_option(name)->choices;
  const auto found = std::find(choices.begin(), choices.end(), value.toStringRef());
  if (found == choices.end())
    throw Error(ErrorKind::kUnknownName, name, value.toStringRef(),
                "no such choice" + did_you_mean(value.toStringRef(), choices));
  return static_cast<double>(found - choices.begin());
}

bool is_scalar(const IValue& argument) { return !argument.isTensor() && !argument.isTensorList(); }

// What a Runnable is made for: the numeric mode and the options, from the call's scalars and its tensors' dtype.
Setting setting_of(const Signature& signature, const FunctionSchema& schema, Arguments arguments,
                   const NamedTensors& inputs, Pass pass) {
  Setting setting;
  setting.input_case.name = "operator";
  setting.input_case.pass = pass;
  const auto& [first_name, first] = *inputs.begin();
  setting.device = first.device();
  for (const auto& [name, tensor] : inputs)
    if (tensor.device() != setting.device.tensors())
      throw Error(ErrorKind::kBadArgument, name, tensor.device().str(), first_name + " is on " + first.device().str());
  bool bf16 = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!is_scalar(arguments[i])) continue;
    const std::string& name = schema.arguments()[i].name();
    if (name == "bf16_products")
      bf16 = arguments[i].toBool();
    else
      setting.input_case.options[name] = option_value(signature, name, arguments[i]);
  }
  const bool wide = first.scalar_type() == at::kDouble;
  setting.dtype = wide ? Dtype::kFp64 : bf16 ? Dtype::kBf16 : Dtype::kFp32;
  if (wide && bf16) throw Error(ErrorKind::kBadArgument, "bf16_products", "True", "give float32 tensors with it");
  if (wide && first.is_cuda()) throw Error(ErrorKind::kBadDtype, first_name, "Double", "on CUDA give float32 tensors");
  return setting;
}

constexpr std::size_t kSmall = 1 << 16;  // bytes that are copied before the dispatcher has found its copy

void copy_into(const at::Tensor& to, const at::Tensor& from) {
  if (from.is_cpu() && from.is_contiguous() && from.nbytes() <= kSmall)
    std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
  else
    to.copy_(from);
}

at::Tensor copy_of(const at::Tensor& tensor) {
  at::Tensor copy = at::empty(tensor.sizes(), tensor.options());
  copy_into(copy, tensor);
  return copy;
}

// An operator's results share memory with nothing. A Runnable's may be its own buffers, views of one, or its inputs.
void make_independent(NamedTensors& results) {
  for (auto& [name, tensor] : results) {
    const bool alone = tensor.use_count() == 1 && tensor.storage().use_count() == 1 && tensor.is_contiguous() &&
                       tensor.nbytes() == tensor.storage().nbytes();
    if (!alone) tensor = copy_of(tensor);
  }
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

class Compute final : public c10::OperatorKernel {
 public:
  Compute(const std::string& component, c10::DeviceType device, Pass pass)
      : component_(find_component(component)), device_(device), pass_(pass) {
    if (pass == Pass::kBackward)  // the results' gradients come before the inputs
      for (const auto& output : component_.spec.signature.outputs)
        if (output.gradient) is_parameter_.push_back(false);
    for (const auto& input : component_.spec.signature.inputs)
      is_parameter_.push_back(input.role == Role::kWeight || input.role == Role::kBias || input.role == Role::kGain);
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    NamedTensors results;
    try {
      results = compute(op.schema(), torch::jit::last(*stack, op.schema().arguments().size()));
    } catch (const Error& error) {
      raise(error, op.schema().name());
    }
    operators::return_results(op.schema(), results, stack);
  }

 private:
  NamedTensors compute(const FunctionSchema& schema, Arguments arguments) {
    std::optional<CallKey> key = key_of(schema, arguments);
    std::unique_ptr<PreparedCall> call = key ? cache_.take(*key) : nullptr;
    if (call)
      take_data(*call, arguments);
    else
      call = prepare(schema, arguments, std::move(key));
    call->runnable->run();
    NamedTensors results = call->runnable->outputs();
    if (!call->key) call.reset();  // what it does not hold need not be copied
    make_independent(results);
    if (call) cache_.give_back(std::move(call));
    return results;
  }

  // None where the set-up is not to be kept: a parameter without a version; on CUDA any stream but the default one, for
  // buffers belong to one stream, and a graph that is captured must pack its weights in every replay.
  std::optional<CallKey> key_of(const FunctionSchema& schema, Arguments arguments) const {
    CallKey key;
    key.add(at::get_num_threads());
    key.add(c10::InferenceMode::is_enabled());  // its tensors are of another kind
    bool versions = true;
    const auto add = [&](const at::Tensor& tensor, bool parameter) {
      if (parameter)
        versions &= key.add_parameter(tensor);
      else
        key.add_data(tensor);
    };
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].isTensor()) {
        add(arguments[i].toTensor(), is_parameter_[i]);
      } else if (arguments[i].isTensorList()) {
        const auto list = arguments[i].toListRef();
        key.add(static_cast<std::int64_t>(list.size()));
        for (const IValue& tensor : list) add(tensor.toTensor(), is_parameter_[i]);
      } else {
        const double value = option_value(component_.spec.signature, schema.arguments()[i].name(), arguments[i]);
        key.add(std::bit_cast<std::int64_t>(value));
      }
    }
    if (!versions || !on_default_stream(arguments)) return std::nullopt;
    return key;
  }

  bool on_default_stream(Arguments arguments) const {
    if (device_ == c10::DeviceType::CPU) return true;
    const c10::impl::VirtualGuardImpl guard(device_);
    for (const auto& argument : arguments)
      if (argument.isTensor() && argument.toTensor().device().type() == device_) {
        const c10::Device device = argument.toTensor().device();
        return guard.getStream(device) == guard.getDefaultStream(device);
      }
    return false;
  }

  // `visit` gets every data tensor, in order: what changes from one call of a set-up to the next.
  template <class Visit>
  void each_data(Arguments arguments, Visit visit) const {
    for (std::size_t i = 0; i < is_parameter_.size(); ++i) {
      if (is_parameter_[i]) continue;
      if (arguments[i].isTensor())
        visit(arguments[i].toTensor());
      else
        for (const IValue& tensor : arguments[i].toListRef()) visit(tensor.toTensor());
    }
  }

  void take_data(const PreparedCall& call, Arguments arguments) const {
    auto own = call.data.begin();
    each_data(arguments, [&](const at::Tensor& given) { copy_into(*own++, given); });
  }

  std::unique_ptr<PreparedCall> prepare(const FunctionSchema& schema, Arguments arguments,
                                        std::optional<CallKey> key) const {
    auto call = std::make_unique<PreparedCall>(PreparedCall{std::move(key), {}, nullptr});
    Stack own(arguments.begin(), arguments.end());
    if (call->key) {
      // Data is copied; parameters are other tensors on the same memory, so that a caller's one can still be freed.
      const auto kept = [&](const at::Tensor& tensor, bool parameter) {
        if (parameter) return tensor.detach();
        return call->data.emplace_back(tensor.clone(at::MemoryFormat::Contiguous));
      };
      for (std::size_t i = 0; i < is_parameter_.size(); ++i) {
        if (own[i].isTensor()) {
          own[i] = kept(own[i].toTensor(), is_parameter_[i]);
          continue;
        }
        auto list = own[i].toTensorVector();
        for (auto& tensor : list) tensor = kept(tensor, is_parameter_[i]);
        own[i] = std::move(list);
      }
    }
    const NamedTensors inputs = operators::tensors_of(schema, own);
    const Setting setting = setting_of(component_.spec.signature, schema, own, inputs, pass_);
    call->runnable = component_.make(Variant::kOptimized, device_, inputs, setting);
    return call;
  }

  const Component& component_;
  c10::DeviceType device_;
  Pass pass_;
  std::vector<bool> is_parameter_;  // of each argument that holds tensors; scalars come after them
  operators::OperatorCache cache_;
};

}  // namespace

torch::CppFunction operators::compute_function(const std::string& component, c10::DeviceType device, Pass pass) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Compute>(component, device, pass));
}

}  // namespace twinbench
