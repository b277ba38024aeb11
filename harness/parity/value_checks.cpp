// Checks against values that do not come from the oracle: worked examples and invariants.
#include <cmath>
#include <cstdio>

#include "harness/compare/structure.h"
#include "harness/parity/subject.h"
#include "src/golden_file.h"

namespace twinbench {

namespace {

// `said`: bool, the elements that are given; undefined: all of them.
std::string golden_difference(const std::string& name, const at::Tensor& expected, const at::Tensor& said,
                              const at::Tensor& got, double absolute) {
  if (expected.sizes() != got.sizes())
    return "output '" + name + "': shape " + shape_text(got) + " instead of " + shape_text(expected);
  if (expected.is_complex() != got.is_complex())
    return "output '" + name + "': not complex as the specification has it";
  const HostElements e(expected), g(got);
  for (std::int64_t i = 0; i < e.size(); ++i) {
    if (said.defined() && !said.const_data_ptr<bool>()[i]) continue;
    const Complex right = e.at(i), is = g.at(i);
    const bool both_nan = holds_nan(right) && holds_nan(is);
    if (both_nan || right == is || std::abs(right - is) <= absolute) continue;
    char text[160];
    if (e.is_complex())
      std::snprintf(text, sizeof text, " is %.9g%+.9gi, the specification says %.9g%+.9gi", is.real(), is.imag(),
                    right.real(), right.imag());
    else
      std::snprintf(text, sizeof text, " is %.9g, the specification says %.9g", is.real(), right.real());
    return "output '" + name + "': " + element_text(expected, i) + text;
  }
  return "";
}

void run_golden(const Component& component, Variant variant, const Golden& golden, Setting setting,
                CheckResult& result) {
  const NamedTensors inputs = placed_inputs(golden.inputs, setting.dtype, setting.device);
  const auto runnable = component.make(variant, inputs, setting);
  run_afresh(*runnable);
  const NamedTensors outputs = runnable->outputs();
  for (const auto& [name, expected] : golden.expected) {
    const at::Tensor said = golden.said.contains(name) ? golden.said[name] : at::Tensor();
    const std::string different = golden_difference(name, expected, said, outputs[name], golden.absolute);
    if (!different.empty())
      return result.fail("'" + golden.name + "' in " + to_string(setting.dtype) + ": " + different);
  }
}

}  // namespace

void check_golden(const Component& component, Variant variant, const Setting& setting, CheckResult& result) {
  int ran = 0;
  for (const Golden& golden : worked_examples(component.spec)) {
    if (golden.expected.empty()) result.fail("'" + golden.name + "' expects nothing");
    Setting at_device = golden.setting;
    at_device.device = setting.device;
    if (golden.setting.dtype == setting.dtype) {
      run_golden(component, variant, golden, at_device, result);
      ++ran;
    }
    if (variant == Variant::kBaseline && setting.device.is_cpu() &&
        (golden.setting.dtype == Dtype::kFp32 || golden.setting.dtype == Dtype::kFp64)) {
      run_golden(component, variant, golden, exact_setting(golden.setting), result);  // pins the oracle itself
      ++ran;
    }
  }
  if (ran == 0) result.skip("no worked example is given in " + to_string(setting.dtype));
}

void check_invariants(const Subject& subject, CheckResult& result) {
  NamedTensors inputs, outputs;
  for (const auto& [name, tensor] : subject.generated) inputs.set(name, tensor);
  for (const auto& [name, tensor] : subject.outputs) outputs.set(name, tensor.to(at::kCPU));
  for (const auto& invariant : subject.spec().invariants) {
    const std::string broken = invariant.broken(inputs, outputs, subject.setting);
    if (!broken.empty()) result.fail(invariant.name + ": " + broken);
  }
}

}  // namespace twinbench
