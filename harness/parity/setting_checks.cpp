// Checks over settings other than the case's own: relations and refusals.
#include "harness/compare/inputs.h"
#include "harness/parity/subject.h"
#include "src/common/error.h"
#include "src/common/first_line.h"
#include "src/inputs.h"

namespace twinbench {

namespace {

bool same_case(const Setting& a, const Setting& b) {
  return a.input_case.sizes == b.input_case.sizes && a.input_case.options == b.input_case.options &&
         a.input_case.distribution == b.input_case.distribution && a.dtype == b.dtype && a.device == b.device;
}

std::string relation_broken(const Subject& subject, const Relation& relation, const Setting& own,
                            const Setting& other) {
  const bool same_sizes = other.input_case.sizes == own.input_case.sizes;
  const NamedTensors generated = same_sizes ? subject.generated : generated_inputs(subject.spec(), other, subject.seed);
  const NamedTensors inputs = placed_inputs(generated, other.dtype, other.device);
  const auto runnable = subject.component.make(subject.variant, inputs, other);
  run_afresh(*runnable);
  const NamedTensors outputs = runnable->outputs();
  if (relation.exact) {
    const std::string different = subject.difference(outputs, relation.underflow);
    return different.empty() ? "" : "other bits in " + different;
  }
  for (const auto& spec : subject.outputs_declared())
    if (const auto broken = bound_broken(spec, subject.outputs[spec.name], outputs[spec.name], other.dtype);
        !broken.empty())
      return "output '" + spec.name + "': " + broken;
  return "";
}

// Deep copies, so that spoiling one set leaves the others alone; fp32 on the CPU, where a specification can write them.
NamedTensors copied(const NamedTensors& inputs) {
  NamedTensors copies;
  for (const auto& [name, tensor] : inputs) copies.set(name, tensor.clone());
  return copies;
}

std::string refusal_broken(const Component& component, Variant variant, Setting setting, NamedTensors generated,
                           const Refusal& refusal) {
  const std::string wanted = std::string(name_of(refusal.kind)) + " of '" + refusal.field + "'";
  refusal.spoil(generated, setting);
  try {
    const NamedTensors inputs = placed_inputs(generated, setting.dtype, setting.device);
    const auto runnable = component.make(variant, inputs, setting);
    run_afresh(*runnable);
  } catch (const Error& error) {
    if (error.kind() == refusal.kind && error.field() == refusal.field) return "";
    return "refused with another error than " + wanted + ": " + error.what();
  } catch (const std::exception& error) {
    return "no typed error, " + wanted + " is due: " + first_line(error.what());
  }
  return "accepted, " + wanted + " is due";
}

}  // namespace

void check_relations(const Subject& subject, CheckResult& result) {
  bool any = false;
  const Setting own = completed(subject.spec().signature, subject.setting);
  for (const auto& relation : subject.spec().relations) {
    const Setting other = completed(subject.spec().signature, relation.other(own));
    if (same_case(other, own)) continue;
    any = true;
    if (const std::string broken = relation_broken(subject, relation, own, other); !broken.empty())
      return relation.exact ? result.fail(relation.name + ": " + broken)
                            : result.fail_comparison(relation.name + ": " + broken);
  }
  if (!any) result.skip("the case is itself the other setting of every relation");
}

void check_ways(const Subject& subject, CheckResult& result) {
  for (const Choice& choice : subject.choices)
    for (const std::string& way : choice.ways) {
      if (way == choice.taken) continue;
      const ChoiceWatch demand(way);
      const Prepared prepared = subject.prepare(subject.placed());
      run_afresh(*prepared.runnable);
      CheckResult judged;
      subject.reference.judge(prepared.runnable->outputs(), judged);
      if (judged.verdict != CheckVerdict::kPass) return result.fail_as(judged, choice.of + " by way of " + way);
    }
}

void check_refusals(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed,
                    CheckResult& result) {
  const NamedTensors generated = generated_inputs(component.spec, setting, seed);
  for (const auto& refusal : component.spec.refusals)
    if (const auto broken = refusal_broken(component, variant, setting, copied(generated), refusal); !broken.empty())
      result.fail(refusal.name + ": " + broken);
}

}  // namespace twinbench
