// Specimens: the documented mistake is rejected, for what is documented of it and for nothing else.
#include "harness/parity/documented_mistake.h"

#include <ATen/ATen.h>

#include <cmath>
#include <tuple>

#include "harness/compare/inputs.h"
#include "harness/parity/subject.h"
#include "src/inputs.h"
#include "src/spec_tables.h"

namespace twinbench {
namespace {

at::Tensor exact_values(const at::Tensor& tensor) {
  const at::Tensor real = tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
  return real.to(at::kCPU, at::kDouble).flatten();
}

bool within(double value, const nlohmann::json& range) {
  return value >= range.at(0).get<double>() && value <= range.at(1).get<double>();
}

}  // namespace

Wrongness wrongness(const at::Tensor& wrong, const at::Tensor& right) {
  const at::Tensor y = exact_values(wrong), r = exact_values(right);
  constexpr double kBeyond = 1e30;
  if (y.numel() != r.numel()) return {kBeyond, 0, kBeyond, 0};
  const at::Tensor known = r.isfinite(), both = known.logical_and(y.isfinite());
  const at::Tensor got = y.masked_select(both), due = r.masked_select(both);
  const double squares = due.square().sum().item<double>(), off = (got - due).square().sum().item<double>();
  Wrongness found;
  found.error = squares > 0 ? std::sqrt(off / squares) : off > 0 ? kBeyond : 0;
  found.scale = squares > 0 ? (got * due).sum().item<double>() / squares : off > 0 ? kBeyond : 1;
  found.beside =
      squares > 0 ? std::sqrt((got - found.scale * due).square().sum().item<double>() / squares) : found.error;
  found.not_finite = known.logical_and(y.isfinite().logical_not()).to(at::kDouble).mean().item<double>();
  return found;
}

nlohmann::json documented_mistake(const ComponentSpec& spec, const std::string& case_name) {
  const std::string text = spec_text(spec.id());
  if (text.empty()) return nullptr;
  const auto specimens = nlohmann::json::parse(text).value("specimens", nlohmann::json::object());
  return specimens.contains(case_name) ? specimens[case_name] : nlohmann::json(nullptr);
}

std::string measured(const Reference& reference, const NamedTensors& outputs, const CheckResult& judged) {
  std::string all;
  for (const auto& row : judged.outputs) {
    if (row.comparison.accepted()) continue;
    const Wrongness found = wrongness(outputs[row.name], reference.oracle()[row.name]);
    all += c10::str("; of ", row.name, " error ", found.error, ", scale ", found.scale, ", beside ", found.beside,
                    ", not_finite ", found.not_finite);
  }
  return all;
}

std::string other_mistake(const nlohmann::json& documented, const Reference& reference, const NamedTensors& outputs,
                          const CheckResult& judged) {
  for (const auto& [name, measures] : documented.items())
    if (!reference.oracle().contains(name)) return "no output is called '" + name + "'";
  for (const auto& row : judged.outputs) {
    const bool accepted = row.comparison.accepted();
    if (accepted == documented.contains(row.name)) {
      if (accepted) return "output '" + row.name + "' is right, and the mistake is documented to be in it";
      return "output '" + row.name + "' is wrong, which is not documented: " + row.comparison.reason;
    }
    if (accepted) continue;
    const Wrongness found = wrongness(outputs[row.name], reference.oracle()[row.name]);
    const auto& measures = documented[row.name];
    const std::tuple<const char*, double, nlohmann::json> of[] = {
        {"error", found.error, measures.at("error")},
        {"scale", found.scale, measures.at("scale")},
        {"beside", found.beside, measures.value("beside", nlohmann::json{0, 1e30})},
        {"not_finite", found.not_finite, measures.value("not_finite", nlohmann::json{0, 0})}};
    for (const auto& [what, value, range] : of) {
      if (!within(value, range))
        return c10::str("output '", row.name, "': its ", what, " is ", value, ", and documented from ", range[0],
                        " to ", range[1]);
    }
  }
  return "";
}

void check_specimen(const Component& component, const Setting& asked, std::uint64_t seed, OracleCache& oracles,
                    CheckResult& result) {
  const Setting setting = completed(component.spec.signature, asked);
  const std::string& mistake = setting.input_case.specimen;
  if (!setting.on(mistake)) return result.fail("invalid case: it does not switch on '" + mistake + "'");
  Setting right = setting;
  right.input_case.options[mistake] = 0;
  const NamedTensors generated = generated_inputs(component.spec, right, seed);
  const Reference reference(component, right, generated, oracles);
  CheckResult control;
  reference.judge(reference.baseline(), control);
  if (control.verdict != CheckVerdict::kPass) return result.fail("without '" + mistake + "': " + control.reason);
  const NamedTensors inputs = placed_inputs(generated, setting.dtype, setting.device);
  const auto runnable = component.make(Variant::kBaseline, inputs, setting);
  run_afresh(*runnable);
  CheckResult shown;
  const NamedTensors outputs = copied_outputs(*runnable);
  reference.judge(outputs, shown);
  if (shown.verdict == CheckVerdict::kPass)
    return result.fail("the documented mistake '" + mistake + "' cannot be seen: its outputs are accepted");
  const std::string seen = measured(reference, outputs, shown);
  if (*spec_text(component.spec.id()) != '\0') {  // else it is one of the self-test's
    const auto documented = documented_mistake(component.spec, setting.input_case.name);
    if (documented.is_null())
      return result.fail("'specimens' of spec.json does not say how wrong '" + mistake +
                         "' is, so that any wrong answer would do" + seen);
    if (const std::string other = other_mistake(documented, reference, outputs, shown); !other.empty())
      return result.fail("rejected, and not for the documented mistake '" + mistake + "': " + other);
  }
  // How wrong the mistake is in the component's own measure.
  const std::string broken = broken_invariants(component.spec, generated, outputs, setting);
  result.reason = "rejected as it must be: " + shown.reason + seen + (broken.empty() ? "" : "; " + broken);
}

}  // namespace twinbench
