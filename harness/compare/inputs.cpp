// Input generation, casting and placement.
#include "harness/compare/inputs.h"

#include "src/common/error.h"
#include "src/inputs.h"
#include "src/stored_states.h"

namespace twinbench {

NamedTensors generated_inputs(const ComponentSpec& spec, const Setting& setting, std::uint64_t seed) {
  NamedTensors inputs = generate_inputs(spec, setting, seed);
  std::set<std::string> doubles;
  for (const auto& input : inputs_of(spec.signature, completed(spec.signature, setting)))
    if (input.element == Element::kDouble) doubles.insert(input.name);
  for (const auto& [name, tensor] : inputs) {
    const std::string field = spec.id() + " input '" + name + "'";
    if (!tensor.defined()) throw Error(ErrorKind::kInternal, field, "undefined", "finish_inputs must fill every input");
    if (!tensor.device().is_cpu())
      throw Error(ErrorKind::kInternal, field, tensor.device().str(), "finish_inputs gives CPU tensors");
    const auto dtype = tensor.scalar_type();
    if ((dtype == at::kDouble && !doubles.count(name)) || dtype == at::kComplexDouble)
      throw Error(ErrorKind::kBadDtype, field, c10::toString(dtype),
                  "finish_inputs gives fp32, complex64 or integer tensors, and fp64 ones where the signature says so");
  }
  return inputs;
}

NamedTensors placed_inputs(const NamedTensors& generated, Dtype dtype, c10::Device device) {
  NamedTensors placed;
  for (const auto& [name, tensor] : generated) {
    const bool wide = dtype == Dtype::kFp64;
    const auto target = wide && tensor.is_complex()          ? at::kComplexDouble
                        : wide && tensor.is_floating_point() ? at::kDouble
                                                             : tensor.scalar_type();
    at::Tensor copy = tensor.to(device, target);
    placed.set(name, copy.is_same(tensor) ? tensor.clone() : copy);
  }
  return placed;
}

void overwrite_inputs(const NamedTensors& inputs, const NamedTensors& generated, const Setting& setting) {
  for (const auto& [name, contents] : placed_inputs(generated, setting.dtype, setting.device))
    inputs[name].detach().copy_(contents);
}

bool go_on_from(NamedTensors& inputs, const std::string& state, const NamedTensors& outputs) {
  if (!inputs.contains(state) || !outputs.contains(state)) return false;
  if (!outputs[state].sizes().equals(inputs[state].sizes())) return false;
  inputs.set(state, outputs[state].to(inputs[state].options()));
  return true;
}

std::set<std::string> inputs_read_by_run(const ComponentSpec& spec, const Setting& setting) {
  const bool steps = spec.batch_size.empty() && spec.signature.has_state();
  std::set<std::string> names;
  for (const auto& input : inputs_of(spec.signature, completed(spec.signature, setting))) {
    const bool table = c10::isIntegralType(scalar_type(input.element, setting.dtype), /*includeBool=*/true);
    const bool of_step = steps && input.role == Role::kData && !table;
    if (input.role != Role::kState && (input.batch_axis || of_step)) names.insert(input.name);
  }
  return names;
}

Setting oracle_setting(const Setting& setting) {
  Setting oracle = setting;
  const bool own = sets_decisions_aside(setting);  // as what it decides is judged
  oracle.rounding = own ? setting.rounds_as() : Dtype::kFp64;
  oracle.dtype = Dtype::kFp64;
  oracle.device = c10::Device(c10::DeviceType::CPU);
  return oracle;
}

Setting exact_setting(const Setting& setting) {
  Setting exact = oracle_setting(setting);
  exact.rounding = Dtype::kFp64;
  return exact;
}

}  // namespace twinbench
