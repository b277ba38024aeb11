// The run before gives the states; the rest is a case like any other.
#include "harness/parity/later_step.h"

#include "harness/compare/compare.h"
#include "harness/compare/inputs.h"
#include "harness/parity/reference.h"
#include "src/common/error.h"
#include "src/inputs.h"

namespace twinbench {

std::string wrong_step_from(const Component& component, const Setting& setting, NamedTensors inputs,
                            const NamedTensors& before, const NamedTensors& after) {
  for (const auto& input : inputs_of(component.spec.signature, completed(component.spec.signature, setting)))
    if (input.role == Role::kState && !go_on_from(inputs, input.name, before)) return "";
  try {
    const Reference reference(component, setting, inputs);
    CheckResult judged;
    reference.judge(after, judged);
    for (const auto& row : judged.outputs)  // nobody drew this state: what is looked for is work that is not done
      if (row.comparison.judgement == Judgement::kRejected && row.comparison.worst_ratio > kGross)
        return "output '" + row.name + "': " + row.comparison.reason;
    return "";
  } catch (const Error&) {  // so far from where it began it is a state that the baseline refuses
    return "";
  }
}

}  // namespace twinbench
