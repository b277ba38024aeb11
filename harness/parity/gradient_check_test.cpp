// Central differences: a wrong gradient fails, and where an output is not finite there are none.
#include "harness/parity/gradient_check.h"

#include <gtest/gtest.h>

#include "harness/compare/inputs.h"
#include "harness/parity/reference.h"

namespace twinbench {
namespace {

CheckVerdict checked(double bad_value, double factor) {
  const Component& component = find_component("energy_flow.losses");
  Setting setting;
  setting.input_case.name = "any";
  setting.input_case.pass = Pass::kBackward;
  setting.input_case.sizes = {{"rows", 4}, {"cells", 12}, {"decoder_max_batch", 4}};
  setting.input_case.options = {{"bad_value", bad_value}};
  setting = completed(component.spec.signature, setting);
  const NamedTensors generated = generated_inputs(component.spec, setting, 1);
  NamedTensors gradients;
  for (const auto& [name, tensor] : baseline_outputs(component, exact_setting(setting), generated))
    gradients.set(name, tensor.is_floating_point() ? tensor * factor : tensor);
  CheckResult result;
  check_gradient(component, setting, generated, gradients, {}, result);
  return result.verdict;
}

TEST(GradientCheck, WhereAnOutputIsNotFiniteNothingHasASlope) {
  EXPECT_EQ(checked(0, 1), CheckVerdict::kPass);
  EXPECT_EQ(checked(0, 1.01), CheckVerdict::kFail);
  EXPECT_EQ(checked(2, 1), CheckVerdict::kSkip);
}

}  // namespace
}  // namespace twinbench
