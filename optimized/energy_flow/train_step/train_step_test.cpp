// What the engines do not ask of energy_flow.train_step: however a window's rows are split, its gradients are the same;
// the losses of the specification's example; windows go on from where the last one ended.
#define TWINBENCH_SIMT
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/energy_flow/common/training_window.h"
#include "src/registry.h"

namespace twinbench::energy_flow::train_step {
namespace {

const Component& component() { return find_component("energy_flow.train_step"); }

Setting setting_of(std::int64_t micro_steps, std::int64_t micro_batch, Options options = {}) {
  Setting s;
  for (const Case& one : component().spec.cases)
    if (one.name == "no_sin") s.input_case = one;
  s.input_case.sizes["quota"] = 3, s.input_case.sizes["max_steps"] = 3;
  s.input_case.sizes["micro_steps"] = micro_steps, s.input_case.sizes["micro_batch"] = micro_batch;
  for (const auto& [name, value] : options) s.input_case.options[name] = value;
  return completed(component().spec.signature, s);
}

NamedTensors outputs_of(Variant variant, Device device, const NamedTensors& inputs, Setting s, int windows = 1) {
  s.device = device;
  const auto runnable = component().make(variant, device, inputs, s);
  runnable->start_over();
  for (int i = 0; i < windows; ++i) runnable->run();
  NamedTensors copies;
  for (const auto& [name, tensor] : runnable->outputs()) copies.set(name, tensor.clone());
  return copies;
}

double relative(const at::Tensor& is, const at::Tensor& expected) {
  return at::linalg_vector_norm(is - expected).item<double>() / at::linalg_vector_norm(expected).item<double>();
}

struct Way {
  Variant variant;
  Device device;
};
const Way kWays[] = {
    {Variant::kBaseline, Device()}, {Variant::kOptimized, Device()}, {Variant::kOptimized, Device::simt()}};

TEST(TrainStep, FourMicroBatchesAreOneOfAllRows) {
  const Setting split = setting_of(4, 2), whole = setting_of(1, 8);
  const NamedTensors inputs = generate_inputs(component().spec, split, 3);
  for (const auto& [variant, device] : kWays) {
    const NamedTensors four = outputs_of(variant, device, inputs, split),
                       one = outputs_of(variant, device, inputs, whole);
    EXPECT_LE(relative(four["gradients"], one["gradients"]), 1e-4) << to_string(variant);
    EXPECT_LE(relative(four["loss"], one["loss"]), 1e-5) << to_string(variant);
  }
}

TEST(TrainStep, ARaggedWindowIsTheMeanOverItsRows) {
  const Setting ragged = setting_of(3, 2, {{"missing_rows", 1}, {"accumulation", 4}}), whole = setting_of(1, 5);
  const NamedTensors six = generate_inputs(component().spec, ragged, 3);
  NamedTensors five = six;
  for (const char* name : {"input", "target", "sample_key"}) five.set(name, six[name].narrow(0, 0, 5).contiguous());
  for (const auto& [variant, device] : kWays)
    EXPECT_LE(relative(outputs_of(variant, device, six, ragged)["gradients"],
                       outputs_of(variant, device, five, whole)["gradients"]),
              1e-4)
        << to_string(variant);
}

// The specification's example has its NaN in the third of four micro-steps.
TEST(TrainStep, AMicroStepThatIsNoNumberLeavesTheOthers) {
  const Setting s = setting_of(4, 2, {{"sanitise", 0}});
  NamedTensors inputs = generate_inputs(component().spec, s, 3);
  const NamedTensors clean = inputs;
  inputs.set("target", inputs["target"].clone());
  inputs["target"].select(0, 5).fill_(std::numeric_limits<float>::quiet_NaN());
  for (const auto& [variant, device] : kWays) {
    const NamedTensors told = outputs_of(variant, device, inputs, s), all = outputs_of(variant, device, clean, s);
    const at::Tensor losses = told["losses"], kept = at::cat({losses.narrow(0, 0, 2), losses.narrow(0, 3, 1)});
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(losses[i].item<float>()), i == 2) << i;
    EXPECT_NEAR(told["loss"].item<double>(), kept.to(at::kDouble).mean().item<double>(), 1e-6);
    EXPECT_TRUE(at::allclose(losses.nan_to_num(), all["losses"] * at::tensor({1.0f, 1.0f, 0.0f, 1.0f}), 1e-5, 1e-6));
    EXPECT_EQ(told["record"][kSkippedMicro].item<std::int64_t>(), 1);
    EXPECT_EQ(told["counts"][kApplied].item<std::int64_t>(), all["counts"][kApplied].item<std::int64_t>());
    EXPECT_TRUE(told["gradients"].isfinite().all().item<bool>());
  }
}

// Packs, attempt and displacements' scale move with the state: three windows in turn are those that start from what
// each one has left.
TEST(TrainStep, WindowsGoOnFromWhereTheLastOneEnded) {
  const Setting s = setting_of(2, 2, {{"learning_rate", 0.01}, {"applied", 108}, {"smallest_scale", 0.5}, {"clip", 0}});
  const NamedTensors inputs = generate_inputs(component().spec, s, 3);
  for (const auto& [variant, device] : kWays) {
    NamedTensors next = inputs, last;
    for (int i = 0; i < 3; ++i) {
      last = outputs_of(variant, device, next, s);
      std::int64_t from = 0;
      for (const InputSpec& one : trained_parameters(s)) {
        const at::Tensor& was = next[one.name];
        next.set(one.name, last["parameters"].narrow(0, from, was.numel()).view(was.sizes()).clone());
        from += was.numel();
      }
      for (const char* name : {"first_moment", "second_moment", "counts"}) next.set(name, last[name]);
    }
    const NamedTensors in_turn = outputs_of(variant, device, inputs, s, 3);
    for (const char* name : {"parameters", "gradients", "counts", "loss"})
      EXPECT_TRUE(in_turn[name].equal(last[name])) << to_string(variant) << " " << name;
    EXPECT_EQ(last["counts"][kApplied].item<std::int64_t>(), 111);
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::train_step
