// Parameters that an optimizer has changed in place are taken by a pass that exists, as a pass that is made from them
// would take them: the same bits, on the CPU and in the packs of the CUDA path.
#define TWINBENCH_SIMT
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "optimized/energy_flow/common/cuda_flow_pass.h"
#include "optimized/energy_flow/common/flow_packs.h"
#include "optimized/energy_flow/common/flow_pass.h"
#include "src/registry.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

using namespace flow_forward;  // the pass is in the namespace of its flows

struct Trained {
  NamedTensors inputs;  // trained ones are views of the arena
  Setting setting;
  at::Tensor arena;
};

Trained trained(const std::string& name, Dtype dtype) {
  const ComponentSpec& spec = find_component("energy_flow.flow_backward").spec;
  Trained of;
  for (const Case& one : spec.cases)
    if (one.name == name) of.setting.input_case = one;
  of.setting.dtype = dtype;
  of.setting = completed(spec.signature, of.setting);
  const NamedTensors drawn = generate_inputs(spec, of.setting, 3);
  std::vector<at::Tensor> parts = {at::zeros({5})};  // the first parameter is not the arena's first element
  for (const InputSpec& input : parameters_of(of.setting))
    if (input.differentiable) parts.push_back(drawn[input.name].reshape({-1}));
  of.arena = at::cat(parts);
  of.inputs = drawn;
  std::int64_t at = 5;
  for (const InputSpec& input : parameters_of(of.setting)) {
    if (!input.differentiable) continue;
    const at::Tensor& tensor = drawn[input.name];
    of.inputs.set(input.name, of.arena.narrow(0, at, tensor.numel()).view(tensor.sizes()));
    at += tensor.numel();
  }
  return of;
}

struct Taken {
  at::Tensor surface, sums;
};

FlowPlaces places_of(const Trained& of) {
  return {.initial_energy = of.inputs["initial_energy"],
          .sample_key = of.inputs["sample_key"],
          .surface = at::empty_like(of.inputs["initial_energy"]),
          .grad_surface = of.inputs["grad_surface"],
          .grad_initial_energy = at::zeros_like(of.inputs["initial_energy"])};
}
Taken taken(FlowPass& pass, const FlowPlaces& places) {
  pass.forward(places.surface.size(0));
  pass.backward(places.surface.size(0));
  return {places.surface.clone(), pass.sums().clone()};
}

void change(const Trained& of) { of.arena.mul_(0.75).add_(0.01); }

class Refresh : public testing::TestWithParam<std::tuple<const char*, Dtype>> {};

TEST_P(Refresh, APassTakesParametersThatHaveChanged) {
  const Trained of = trained(std::get<0>(GetParam()), std::get<1>(GetParam()));
  const FlowPlaces places = places_of(of);
  FlowPass pass(of.inputs, of.setting, places);
  pass.train(of.inputs, of.setting, of.arena);
  const Taken before = taken(pass, places);
  change(of);
  pass.refresh();
  const Taken after = taken(pass, places);
  FlowPass fresh(of.inputs, of.setting, places);
  const Taken expected = taken(fresh, places);
  EXPECT_FALSE(after.surface.equal(before.surface));
  EXPECT_TRUE(after.surface.equal(expected.surface));
  EXPECT_TRUE(after.sums.equal(expected.sums));
}

TEST_P(Refresh, EachPackOfTheCudaPathIsAsIfItWereMadeAgain) {
  const Trained of = trained(std::get<0>(GetParam()), std::get<1>(GetParam()));
  const auto packs_of = [](const NamedTensors& inputs, const Setting& setting) {
    return FlowPacks(inputs, setting, true).all();
  };
  const std::vector<at::Tensor> packs = packs_of(of.inputs, of.setting);
  const auto sources = pack_sources(packs, packs_of, of.inputs, of.setting, of.arena);
  EXPECT_GE(sources.size(), packs.size() - 1) << "of a gate alone nothing is trained";
  change(of);
  refresh(sources, of.arena);
  const std::vector<at::Tensor> expected = packs_of(of.inputs, of.setting);
  for (std::size_t i = 0; i < packs.size(); ++i) EXPECT_TRUE(packs[i].equal(expected[i])) << i;
}

// Recorded steps hold addresses (C32): what lies there is read anew, and the sums are where they were.
TEST_P(Refresh, RecordedStepsTakeParametersThatHaveChanged) {
  Trained of = trained(std::get<0>(GetParam()), std::get<1>(GetParam()));
  of.setting.device = Device::simt();
  of.setting.input_case.options["captured_steps"] = 2;
  FlowPlaces places = places_of(of);
  places.tape_bytes = at::zeros({kTapeColumns}, at::kLong);
  const auto taken_of = [&](CudaFlowPass& pass) {
    pass.forward(places.surface.size(0));
    pass.backward();
    return Taken{places.surface.clone(), pass.sums().clone()};
  };
  CudaFlowPass pass(of.inputs, of.setting, places);
  const auto sources = pass.train(of.arena);
  const Taken before = taken_of(pass);
  const void* const sums = pass.sums().const_data_ptr();
  change(of);
  refresh(sources, of.arena);
  const Taken after = taken_of(pass);
  CudaFlowPass fresh(of.inputs, of.setting, places);
  const Taken expected = taken_of(fresh);
  EXPECT_FALSE(after.surface.equal(before.surface));
  EXPECT_TRUE(after.surface.equal(expected.surface));
  EXPECT_TRUE(after.sums.equal(expected.sums));
  EXPECT_EQ(pass.sums().const_data_ptr(), sums);
}

INSTANTIATE_TEST_SUITE_P(Cases, Refresh,
                         testing::Combine(testing::Values("gate", "spawning", "one"),
                                          testing::Values(Dtype::kFp32, Dtype::kBf16)));

}  // namespace
}  // namespace twinbench::energy_flow::flow_backward
