// The CPU and CUDA implementation that all custom operators share: runs a set-up of the optimized variant, made in this
// call or kept from an earlier one.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "optimized/common/operator_cache.h"
#include "optimized/common/operators.h"
#include "optimized/common/two_halves.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

using c10::FunctionSchema;
using c10::IValue;
using operators::CallKey;
using operators::ComputeFunctions;
using operators::PreparedCall;
using torch::jit::Stack;
using Arguments = c10::ArrayRef<IValue>;

// A call of a component's operator: its formal arguments and what was given for them.
struct Call {
  c10::ArrayRef<c10::Argument> names;
  Arguments values;
};

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
Setting setting_of(const Signature& signature, const Call& given, const NamedTensors& inputs, Pass pass) {
  Setting setting;
  setting.input_case.name = "operator";
  setting.input_case.pass = pass;
  const auto& [first_name, first] = *inputs.begin();
  setting.device = first.device();
  for (const auto& [name, tensor] : inputs)
    if (tensor.device() != setting.device.tensors())
      throw Error(ErrorKind::kBadArgument, name, tensor.device().str(), first_name + " is on " + first.device().str());
  bool bf16 = false;
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    const IValue& value = given.values[i];
    if (!is_scalar(value)) continue;
    const std::string& name = given.names[i].name();
    if (name == "bf16_products")
      bf16 = value.toBool();
    else if (signature.has_size(name))
      setting.input_case.sizes[name] = value.toInt();
    else
      setting.input_case.options[name] = option_value(signature, name, value);
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

// The set-ups of a component on one device for one pass, and who takes them.
class SetUps {
 public:
  SetUps(const Component& component, c10::DeviceType device, Pass pass)
      : component_(component), device_(device), pass_(pass) {
    for (const auto& input : component_.spec.signature.inputs)
      is_parameter_.push_back(input.role == Role::kWeight || input.role == Role::kBias || input.role == Role::kGain);
  }

  // One that holds the call's data: kept from an earlier call, or made. `gradients`: of the results, in order; where
  // they are not known yet, none.
  std::unique_ptr<PreparedCall> take(const Call& given, Arguments gradients) {
    std::optional<CallKey> key = key_of(given);
    std::unique_ptr<PreparedCall> call = key ? cache_.take(*key) : nullptr;
    if (!call || !fits(*call, gradients)) return prepare(given, gradients, std::move(key));
    auto own = call->data.begin();
    each_data(given, [&](const at::Tensor& data) { copy_into(*own++, data); });
    for (std::size_t i = 0; i < gradients.size(); ++i) copy_into(call->gradients[i], gradients[i].toTensor());
    if (call->check) call->check();
    return call;
  }

  void give_back(std::unique_ptr<PreparedCall> call) {
    if (call->key) cache_.give_back(std::move(call));
  }

 private:
  // None where the set-up is not to be kept: a parameter without a version; on CUDA any stream but the default one, for
  // buffers belong to one stream, and a graph that is captured must pack its weights in every replay.
  std::optional<CallKey> key_of(const Call& given) const {
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
    for (std::size_t i = 0; i < given.values.size(); ++i) {
      const IValue& value = given.values[i];
      if (value.isTensor()) {
        add(value.toTensor(), is_parameter_[i]);
      } else if (value.isTensorList()) {
        const auto list = value.toListRef();
        key.add(static_cast<std::int64_t>(list.size()));
        for (const IValue& tensor : list) add(tensor.toTensor(), is_parameter_[i]);
      } else {
        const double number = option_value(component_.spec.signature, given.names[i].name(), value);
        key.add(std::bit_cast<std::int64_t>(number));
      }
    }
    if (!versions || !on_default_stream(given.values)) return std::nullopt;
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

  // The results' sizes follow from the arguments': gradients of any other are refused where a set-up is made.
  static bool fits(const PreparedCall& call, Arguments gradients) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor &own = call.gradients[i], &given = gradients[i].toTensor();
      if (own.sizes() != given.sizes() || own.scalar_type() != given.scalar_type() || own.device() != given.device())
        return false;
    }
    return true;
  }

  // `visit` gets every data tensor, in order: what changes from one call of a set-up to the next.
  template <class Visit>
  void each_data(const Call& given, Visit visit) const {
    for (std::size_t i = 0; i < is_parameter_.size(); ++i) {
      if (is_parameter_[i]) continue;
      if (given.values[i].isTensor())
        visit(given.values[i].toTensor());
      else
        for (const IValue& tensor : given.values[i].toListRef()) visit(tensor.toTensor());
    }
  }

  std::unique_ptr<PreparedCall> prepare(const Call& given, Arguments gradients, std::optional<CallKey> key) const {
    auto call = std::make_unique<PreparedCall>(PreparedCall{std::move(key), {}, {}, nullptr, {}});
    Stack own(given.values.begin(), given.values.end());
    // Data is copied; parameters are other tensors on the same memory, so that a caller's one can still be freed.
    const auto copied = [](const at::Tensor& tensor) { return tensor.clone(at::MemoryFormat::Contiguous); };
    if (call->key) {
      const auto kept = [&](const at::Tensor& tensor, bool parameter) {
        return parameter ? tensor.detach() : call->data.emplace_back(copied(tensor));
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
    NamedTensors inputs = operators::tensors_of(given.names, own);
    const Setting setting = setting_of(component_.spec.signature, {given.names, own}, inputs, pass_);
    if (pass_ == Pass::kBackward) {
      const NamedTensors unknown = gradients.empty() ? zero_gradients(inputs, setting) : NamedTensors();
      auto next = gradients.begin();
      for (const auto& output : component_.spec.signature.outputs) {
        if (!output.gradient) continue;
        const std::string name = "grad_" + output.name;
        call->gradients.push_back(gradients.empty() ? unknown[name]
                                  : call->key       ? copied((next++)->toTensor())
                                                    : (next++)->toTensor());
        inputs.set(name, call->gradients.back());
      }
    }
    call->runnable = component_.make(Variant::kOptimized, device_, inputs, setting);
    // On a device every look would wait for it.
    if (const auto& check = component_.spec.check_inputs; check && call->key && device_ == c10::DeviceType::CPU)
      call->check = [&check, inputs, setting = bound(component_.spec.signature, inputs, setting)] {
        check(inputs, setting);
      };
    return call;
  }

  NamedTensors zero_gradients(const NamedTensors& inputs, Setting setting) const {
    const Signature& signature = component_.spec.signature;
    setting.input_case.pass = Pass::kForward;
    setting = bound(signature, inputs, setting);
    NamedTensors gradients;
    for (const auto& output : outputs_of(signature, setting))
      gradients.set("grad_" + output.name,
                    at::zeros(extents(output.shape, setting),
                              at::TensorOptions(setting.device).dtype(scalar_type(output.element, setting.dtype))));
    return gradients;
  }

  const Component& component_;
  c10::DeviceType device_;
  Pass pass_;
  std::vector<bool> is_parameter_;  // of each argument that holds tensors; scalars come after them
  operators::OperatorCache cache_;
};

// What a component's four operators do on one device.
class Compute {
 public:
  Compute(const std::string& component, c10::DeviceType device)
      : component_(find_component(component)),
        forward_(component_, device, Pass::kForward),
        both_(component_, device, Pass::kBackward) {
    for (const auto& output : component_.spec.signature.outputs) gradients_ += output.gradient ? 1 : 0;
  }

  NamedTensors forward(const FunctionSchema& schema, Arguments arguments) {
    return run(forward_, {schema.arguments(), arguments}, {});
  }

  NamedTensors backward(const FunctionSchema& schema, Arguments arguments) {
    return run(both_, after(gradients_, schema, arguments), arguments.slice(0, gradients_));
  }

  // The forward pass, and copies of what it leaves for the backward one: none where there are no two halves.
  NamedTensors keeping(const FunctionSchema& schema, Arguments arguments) {
    if (whole_) return forward(schema, arguments);
    auto call = both_.take({schema.arguments(), arguments}, {});
    auto* halves = dynamic_cast<TwoHalves*>(call->runnable.get());
    if (!halves) {
      whole_ = true;
      both_.give_back(std::move(call));
      return forward(schema, arguments);
    }
    halves->run_forward();
    NamedTensors results = halves->forward_outputs();
    std::size_t count = 0;
    for (const at::Tensor& kept : halves->kept()) results.set("kept_" + std::to_string(count++), kept);
    return finished(both_, std::move(call), std::move(results));
  }

  NamedTensors backward_kept(const FunctionSchema& schema, Arguments arguments) {
    auto call = both_.take(after(gradients_ + 1, schema, arguments), arguments.slice(0, gradients_));
    auto* halves = dynamic_cast<TwoHalves*>(call->runnable.get());
    const auto own = halves ? halves->kept() : std::vector<at::Tensor>();
    const auto kept = arguments[gradients_].toTensorVector();
    const auto alike = [](const at::Tensor& one, const at::Tensor& other) {
      return one.sizes() == other.sizes() && one.scalar_type() == other.scalar_type() && one.device() == other.device();
    };
    if (!halves || !std::equal(own.begin(), own.end(), kept.begin(), kept.end(), alike))
      throw Error(ErrorKind::kBadArgument, "kept", std::to_string(kept.size()) + " tensors",
                  "give what " + component_.spec.pipeline + "_" + component_.spec.name + "_keeping returned");
    for (std::size_t i = 0; i < own.size(); ++i) copy_into(own[i], kept[i]);
    halves->run_backward();
    NamedTensors results = halves->give_outputs();
    return finished(both_, std::move(call), std::move(results));
  }

 private:
  // The component's own arguments, which come last.
  static Call after(std::size_t count, const FunctionSchema& schema, Arguments arguments) {
    return {c10::ArrayRef<c10::Argument>(schema.arguments()).slice(count), arguments.slice(count)};
  }

  static NamedTensors run(SetUps& set_ups, const Call& given, Arguments gradients) {
    auto call = set_ups.take(given, gradients);
    call->runnable->run();
    NamedTensors results = call->runnable->outputs();
    return finished(set_ups, std::move(call), std::move(results));
  }

  static NamedTensors finished(SetUps& set_ups, std::unique_ptr<PreparedCall> call, NamedTensors results) {
    if (!call->key) call.reset();  // what it does not hold need not be copied
    make_independent(results);
    if (call) set_ups.give_back(std::move(call));
    return results;
  }

  const Component& component_;
  SetUps forward_, both_;
  std::size_t gradients_ = 0;        // results that have one
  std::atomic<bool> whole_ = false;  // known to have no two halves
};

class Kernel final : public c10::OperatorKernel {
 public:
  using Work = NamedTensors (Compute::*)(const FunctionSchema&, Arguments);
  Kernel(std::shared_ptr<Compute> compute, Work work) : compute_(std::move(compute)), work_(work) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    NamedTensors results;
    try {
      results = (*compute_.*work_)(op.schema(), torch::jit::last(*stack, op.schema().arguments().size()));
    } catch (const Error& error) {
      raise(error, op.schema().name());
    }
    operators::return_results(op.schema(), results, stack);
  }

 private:
  std::shared_ptr<Compute> compute_;
  Work work_;
};

}  // namespace

ComputeFunctions operators::compute_functions(const std::string& component, c10::DeviceType device) {
  const auto compute = std::make_shared<Compute>(component, device);
  const auto function = [&](Kernel::Work work) {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(compute, work));
  };
  return {.forward = function(&Compute::forward),
          .backward = function(&Compute::backward),
          .keeping = function(&Compute::keeping),
          .backward_kept = function(&Compute::backward_kept)};
}

}  // namespace twinbench
