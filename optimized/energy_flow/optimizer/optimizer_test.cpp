// What the engines do not ask of energy_flow.optimizer: a run that is interrupted and resumed has the same bits; pieces
// cover what has a gradient, once.
#define TWINBENCH_SIMT  // as other tests of its unit
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "optimized/energy_flow/optimizer/plan.h"
#include "src/registry.h"

namespace twinbench::energy_flow::optimizer {
namespace {

constexpr std::int64_t kEpochs = 6;

// Epochs [from, until) of `inputs`, a window each, from the state that they hold.
NamedTensors outputs_of(Variant variant, Device device, NamedTensors inputs, Setting setting, std::int64_t from,
                        std::int64_t until) {
  setting.input_case.sizes["epochs"] = until - from;
  for (const char* name : {"gradients", "gradient_factor", "micro_steps", "epoch_loss"})
    inputs.set(name, inputs[name].slice(0, from, until).contiguous());
  const auto runnable = find_component("energy_flow.optimizer").make(variant, device, inputs, setting);
  runnable->run();
  NamedTensors copies;
  for (const auto& [name, tensor] : runnable->outputs()) copies.set(name, tensor.clone());
  return copies;
}

// The schedule lowers the rate in the half that is run later, from what the first half has counted.
TEST(Optimizer, ARunThatIsResumedHasTheSameBits) {
  const char* const kState[] = {"parameters", "first_moment", "second_moment", "counts", "schedule"};
  const Component& component = find_component("energy_flow.optimizer");
  Setting setting;
  setting.input_case = component.spec.cases.front();
  setting.input_case.sizes = {{"tensors", 7}, {"elements", 1237}, {"epochs", kEpochs}, {"windows", 1}};
  setting.input_case.options = {{"bad_windows", 1}, {"bad_epochs", 6}, {"course", 1}};
  setting = completed(component.spec.signature, setting);
  const NamedTensors inputs = generate_inputs(component.spec, setting, 3);
  for (const auto& [variant, device] : {std::pair{Variant::kBaseline, Device()},
                                        {Variant::kLibrary, Device()},
                                        {Variant::kOptimized, Device()},
                                        {Variant::kOptimized, Device::simt()}}) {
    const NamedTensors whole = outputs_of(variant, device, inputs, setting, 0, kEpochs);
    const NamedTensors half = outputs_of(variant, device, inputs, setting, 0, kEpochs / 2);
    NamedTensors rest = inputs;
    for (const char* name : kState) rest.set(name, half[name]);
    const NamedTensors resumed = outputs_of(variant, device, rest, setting, kEpochs / 2, kEpochs);
    for (const char* name : kState) EXPECT_TRUE(resumed[name].equal(whole[name])) << to_string(variant) << " " << name;
    EXPECT_EQ(half["schedule"].const_data_ptr<double>()[0], 2.5e-5);
    EXPECT_EQ(whole["schedule"].const_data_ptr<double>()[0], 1.25e-5);
  }
}

TEST(Optimizer, PiecesCoverEachElementWithAGradientOnce) {
  const std::vector<TrainedTensor> tensors = {
      {{0, 5000}, true}, {{5000, 3}, true}, {{5003, 0}, true}, {{5003, 10}, false}, {{5013, 4097}, true}};
  std::vector<int> elements(9110);
  const auto pieces = pieces_of(tensors);
  for (const Piece& piece : pieces) {
    EXPECT_LE(piece.count, kernels::kPieceElements);
    for (std::int64_t i = 0; i < piece.count; ++i) ++elements[static_cast<std::size_t>(piece.first + i)];
  }
  for (std::size_t i = 0; i < elements.size(); ++i) EXPECT_EQ(elements[i], i >= 5003 && i < 5013 ? 0 : 1) << i;
  EXPECT_EQ(pieces.size(), 4u) << "neighbours are one stretch";
}

}  // namespace
}  // namespace twinbench::energy_flow::optimizer
