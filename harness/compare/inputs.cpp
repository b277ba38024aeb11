// Input generation, casting and placement.
#include "harness/compare/inputs.h"

#include <algorithm>

#include "src/common/error.h"
#include "src/inputs.h"
#include "src/rounding.h"

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

std::set<std::string> inputs_read_by_run(const ComponentSpec& spec, const Setting& setting) {
  const auto inputs = inputs_of(spec.signature, completed(spec.signature, setting));
  const bool steps = spec.batch_size.empty() && std::any_of(inputs.begin(), inputs.end(), [](const auto& input) {
                       return input.role == Role::kState;
                     });
  std::set<std::string> names;
  for (const auto& input : inputs) {
    const bool floating = input.element != Element::kInt64 && input.element != Element::kInt32 &&
                          input.element != Element::kByte && input.element != Element::kBool;
    if (input.role != Role::kState && (input.batch_axis || (steps && floating && input.role == Role::kData)))
      names.insert(input.name);
  }
  return names;
}

Setting oracle_setting(const Setting& setting) {
  Setting oracle = setting;
  oracle.rounding = rounds_operands(setting.rounds_as()) ? setting.rounds_as() : Dtype::kFp64;
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
