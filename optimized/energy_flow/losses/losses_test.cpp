// What the engines do not ask of energy_flow.losses: the pass that makes gradients makes the losses, too.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "optimized/energy_flow/losses/plan.h"
#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow::losses {
namespace {

TEST(Losses, GradientsAndLossesComeFromOnePass) {
  const Component& component = find_component("energy_flow.losses");
  Setting setting;
  setting.input_case = component.spec.cases.front();
  setting.input_case.sizes = {{"rows", 5}, {"cells", 3001}, {"decoder_max_batch", 4}};
  setting = completed(component.spec.signature, setting);
  NamedTensors inputs = generate_inputs(component.spec, setting, 3);
  const auto forward = component.make(Variant::kOptimized, Device(), inputs, setting);
  forward->run();
  const NamedTensors expected = forward->outputs();
  setting.input_case.pass = Pass::kBackward;
  inputs.set("grad_total_loss", at::ones({1}));
  const auto backward = component.make(Variant::kOptimized, Device(), inputs, setting);
  backward->run();
  const NamedTensors& losses = dynamic_cast<Plan<float>&>(*backward).losses();
  for (const char* name : {"energy_loss", "encoder_loss", "decoder_loss", "text_loss", "total_loss", "finite"})
    EXPECT_TRUE(losses[name].equal(expected[name])) << name;
  const at::Tensor difference = inputs["surface"] - inputs["target"];
  EXPECT_TRUE(at::allclose(backward->outputs()["grad_surface"], difference * (2.0 / 15005), 1e-6, 0));
}

}  // namespace
}  // namespace twinbench::energy_flow::losses
