// Checks against values that do not come from the oracle: worked examples and invariants.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "harness/compare/inputs.h"
#include "harness/compare/structure.h"
#include "harness/parity/subject.h"
#include "src/golden_file.h"
#include "src/inputs.h"

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

namespace {

// Answers that are none: one output at a time, in all of its elements or in one.
std::vector<NamedTensors> spoilt(const NamedTensors& right) {
  std::vector<NamedTensors> all;
  for (const auto& [name, tensor] : right) {
    if (!tensor.defined() || tensor.numel() == 0) continue;
    const auto with = [&, &name = name](const at::Tensor& wrong) {
      NamedTensors outputs = right;
      outputs.set(name, wrong.contiguous());
      all.push_back(std::move(outputs));
    };
    const auto in_one = [&, &tensor = tensor](const at::Tensor& wrong) {
      at::Tensor one = tensor.clone(at::MemoryFormat::Contiguous);
      one.view({-1})[one.numel() / 2].copy_(wrong.reshape({-1})[one.numel() / 2]);
      with(one);
    };
    with(at::zeros_like(tensor));
    with(tensor.flip({0}));
    for (const at::Tensor& wrong :
         tensor.scalar_type() == at::kBool
             ? std::vector<at::Tensor>{tensor.logical_not()}
             : std::vector<at::Tensor>{tensor.add(1), tensor.sub(2), tensor.neg().sub(1), tensor.mul(3)}) {
      with(wrong.to(tensor.scalar_type()));
      in_one(wrong.to(tensor.scalar_type()));
    }
    if (!tensor.is_floating_point()) continue;
    with(at::full_like(tensor, std::numeric_limits<double>::quiet_NaN()));
    with(tensor.add(1e6));
  }
  return all;
}

// Invariants that no such answer breaks in any small case: they prove nothing, for they may hold of anything.
std::string without_effect(const Component& component, const Setting& first, std::uint64_t seed) {
  std::vector<const Invariant*> open;
  for (const auto& invariant : component.spec.invariants) open.push_back(&invariant);
  for (const auto& input : component.spec.cases) {
    if (open.empty()) break;
    if (input.pass != Pass::kForward || input.timed || !input.specimen.empty()) continue;
    Setting setting = first;
    setting.input_case = input;
    setting = completed(component.spec.signature, setting);
    const NamedTensors inputs = generated_inputs(component.spec, setting, seed);
    NamedTensors right;
    for (const auto& [name, tensor] : baseline_outputs(component, setting, inputs))
      right.set(name, tensor.to(at::kCPU));
    const auto wrong = spoilt(right);
    std::erase_if(open, [&](const Invariant* invariant) {
      return std::any_of(wrong.begin(), wrong.end(), [&](const NamedTensors& outputs) {
        return !invariant->broken(inputs, outputs, setting).empty();
      });
    });
  }
  std::string names;
  for (const Invariant* invariant : open) names += (names.empty() ? "'" : ", '") + invariant->name + "'";
  return names;
}

}  // namespace

std::string broken_invariants(const Subject& subject, const NamedTensors& of_a_run) {
  return broken_invariants(subject.spec(), subject.generated, of_a_run, subject.setting);
}

std::string broken_invariants(const ComponentSpec& spec, const NamedTensors& inputs, const NamedTensors& of_a_run,
                              const Setting& setting) {
  std::string all;
  if (setting.backward()) return all;  // they are about the answer, not its gradients
  NamedTensors outputs;
  for (const auto& [name, tensor] : of_a_run) outputs.set(name, tensor.to(at::kCPU));
  for (const auto& invariant : spec.invariants) {
    const std::string broken = invariant.broken(inputs, outputs, setting);
    if (!broken.empty()) all += (all.empty() ? "" : "; ") + invariant.name + ": " + broken;
  }
  return all;
}

void check_invariants(const Subject& subject, CheckResult& result) {
  if (const std::string broken = broken_invariants(subject, subject.outputs); !broken.empty()) result.fail(broken);
  const auto& cases = subject.spec().cases;
  const auto first = std::find_if(cases.begin(), cases.end(), [](const Case& one) {
    return one.pass == Pass::kForward && !one.degenerate && !one.timed && one.specimen.empty();
  });
  if (subject.variant != Variant::kBaseline || !subject.setting.device.is_cpu() || first == cases.end() ||
      first->name != subject.setting.input_case.name || subject.setting.dtype != subject.spec().dtypes.front())
    return;
  if (const std::string names = without_effect(subject.component, subject.setting, subject.seed); !names.empty())
    result.fail("invalid component: no wrong answer breaks " + names);
}

}  // namespace twinbench
