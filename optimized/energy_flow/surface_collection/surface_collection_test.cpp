// What the engines do not ask of energy_flow.surface_collection: the slots' order changes no bit of the optimized
// variant, and its CPU and CUDA paths give the same bits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow::surface_collection {
namespace {

Setting setting_of(const Component& component, Pass pass) {
  Setting setting;
  setting.input_case.name = "order";
  setting.input_case.pass = pass;
  setting.input_case.sizes = {{"batch", 3}, {"width", 9}, {"height", 4}, {"slots", 211}};
  setting.input_case.options = {{"cells_reached", 20}, {"unfinished_every", 6}, {"stale_every", 5}};
  return completed(component.spec.signature, setting);
}

NamedTensors outputs_of(const Component& component, Device device, const NamedTensors& inputs, Setting setting) {
  setting.device = device;
  const auto runnable = component.make(Variant::kOptimized, device, inputs, setting);
  runnable->run();
  NamedTensors copies;
  for (const auto& [name, tensor] : runnable->outputs()) copies.set(name, tensor.clone());
  return copies;
}

// Bits, NaN too.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kFloat ? a.contiguous().view(at::kInt).equal(b.contiguous().view(at::kInt))
                                       : a.equal(b);
}

TEST(SurfaceCollection, NeitherTheOrderOfSlotsNorThePathChangesABit) {
  const Component& component = find_component("energy_flow.surface_collection");
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    const Setting setting = setting_of(component, pass);
    const NamedTensors inputs = generate_inputs(component.spec, setting, 3);
    const at::Tensor order = at::arange(211, at::kLong).mul(50).remainder(211);
    NamedTensors turned;
    for (const auto& [name, tensor] : inputs)
      turned.set(name, name == "grad_surface" ? tensor : at::index_select(tensor, tensor.dim() - 1, order));
    const NamedTensors first = outputs_of(component, Device(), inputs, setting);
    for (const Device device : {Device(), Device::simt()}) {
      const NamedTensors own = outputs_of(component, device, inputs, setting);
      const NamedTensors other = outputs_of(component, device, turned, setting);
      for (const auto& [name, tensor] : first) {
        EXPECT_TRUE(same_bits(own[name], tensor)) << name;
        EXPECT_TRUE(same_bits(other[name], name == "surface" ? tensor : at::index_select(tensor, 1, order))) << name;
      }
    }
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::surface_collection
