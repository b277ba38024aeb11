// The scale of displacements by the training step: however many there were, its decay is worked out at once.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

TEST(CarrierHeads, ADecayOfAnyLengthEnds) {
  const Component& component = find_component("energy_flow.carrier_heads");
  const auto delta = [&](double global_step) {
    Setting setting;
    for (const Case& one : component.spec.cases)
      if (one.name == "decayed_scale") setting.input_case = one;
    setting.input_case.options["global_step"] = global_step;
    setting.input_case.options["smallest_scale"] = 0.25;
    setting = completed(component.spec.signature, setting);
    const auto runnable =
        component.make(Variant::kBaseline, Device(), generate_inputs(component.spec, setting, 3), setting);
    runnable->start_over();
    runnable->run();
    return runnable->outputs()["delta"].clone();
  };
  const at::Tensor decayed = delta(1000);  // 4 * 0.9^90 is below the smallest scale
  EXPECT_TRUE(delta(9007199254740992).equal(decayed));
  EXPECT_FALSE(delta(135).equal(decayed));
}

}  // namespace
}  // namespace twinbench::energy_flow::carrier_heads
