// What a pass with states in bf16, or products of bf16, gives is judged as parity judges it: whatever a rounding or a
// decision may honestly change is no error, and anything else is one.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "scenarios/runner/catalogue.h"
#include "scenarios/runner/observe.h"

namespace twinbench::energy_flow {
namespace {

ScenarioConfig config_of(const std::string& name) {
  return read_scenario("scenarios/energy_flow/" + name + ".yaml", catalogue());
}

const RunSource& source_of(const std::string& id) {
  const auto& runs = catalogue().runs;
  return *std::find_if(runs.begin(), runs.end(), [&](const RunSource& run) { return run.id() == id; });
}

// The optimized step's verdict, one of its outputs multiplied by `factor`.
StepParity judged(const ScenarioConfig& config, const std::string& output, double factor) {
  at::set_num_threads(1);  // other tests of this program fork
  const RunSource& source = source_of(config.run);
  const Trial trial{config, source, Device(c10::DeviceType::CPU)};
  const auto workload = source.prepare(config);
  const auto oracle = workload->make(trial.oracle()), baseline = workload->make(trial.setting(Variant::kBaseline)),
             optimized = workload->make(trial.setting(Variant::kOptimized));
  for (auto* one : {oracle.get(), baseline.get(), optimized.get()}) one->step();
  NamedTensors outputs = optimized->outputs();
  outputs.set(output, outputs[output].mul(factor));
  return judge_step(trial, config, *workload, {oracle->outputs(), baseline->outputs(), outputs});
}

void expect_told_apart(const ScenarioConfig& config, const std::string& output) {
  const StepParity right = judged(config, output, 1), wrong = judged(config, output, 1.25);
  EXPECT_LE(right.worst_ratio, 1) << right.reason;
  EXPECT_EQ(right.undecided, "");
  EXPECT_GT(wrong.worst_ratio, 1);
  EXPECT_NE(wrong.reason.find(output), std::string::npos) << wrong.reason;
}

TEST(RoundedStates, ACorrectPassIsAcceptedAndAWrongOneIsNot) {
  ScenarioConfig config = config_of("captured_steps");
  config.sizes["samples"] = 2, config.sizes["max_steps"] = 4, config.sizes["quota"] = 20;
  config.options["hidden_dtype"] = 1;
  expect_told_apart(config, "surface");
  config.options["hidden_dtype"] = 0;
  config.dtype = Dtype::kBf16;
  expect_told_apart(config, "surface");
}

// Flows of a large scale that the last step projects: gradients whose right values hang on many decisions.
TEST(RoundedStates, GradientsOfStatesInBf16AreAccepted) {
  ScenarioConfig config = config_of("checkpoint_segments");
  for (const auto& [size, value] : Sizes{{"height", 3},
                                         {"width", 3},
                                         {"quota", 14},
                                         {"max_steps", 5},
                                         {"hidden", 13},
                                         {"layers", 3},
                                         {"features", 12},
                                         {"neuron_width", 9},
                                         {"energy_width", 5},
                                         {"head_width", 11}})
    config.sizes[size] = value;
  for (const auto& [option, value] :
       Options{{"hidden_dtype", 1}, {"scale", 2}, {"smallest_scale", 2}, {"on_stop", 1}, {"ckpt_every", 1}})
    config.options[option] = value;
  const StepParity right = judged(config, "grad_weight_input_1", 1);
  EXPECT_LE(right.worst_ratio, 1) << right.reason;
  EXPECT_EQ(right.undecided, "");
}

// Where a workload has no judge of its own, the tolerance is of the class of what is stored.
class Fixed final : public Workload {
 public:
  std::int64_t items() const override { return 1; }
  std::unique_ptr<TrainingRun> make(const RunSetting&) const override { return nullptr; }
};

TEST(RoundedStates, StoredStatesChooseTheClass) {
  RunSource source;
  source.step_tolerance = {Tolerance::Kind::kBound, {1e-5, 1e-5}, {3e-2, 1e-2}, "step"};
  ScenarioConfig config;
  const at::Tensor right = at::linspace(1, 2, 4096, at::kDouble),
                   error = at::sin(at::arange(4096, at::kDouble).mul(0.7)).mul(1e-3);
  const StepResults results{
      {{"y", right}}, {{"y", right.add(error).to(at::kFloat)}}, {{"y", right.sub(error).to(at::kFloat)}}};
  const Trial trial{config, source, Device(c10::DeviceType::CPU)};
  EXPECT_GT(judge_step(trial, config, Fixed(), results).worst_ratio, 1);
  config.options["hidden_dtype"] = 1;
  EXPECT_LE(judge_step(trial, config, Fixed(), results).worst_ratio, 1);
}

TEST(RoundedStates, WhatIsUndecidedIsNoValue) {
  StepParity all;
  take_worse(all, {0, "", "every decision is close"}, "over 1");
  EXPECT_FALSE(measure_of(all).value);
  EXPECT_EQ(measure_of(all).reason, "over 1: every decision is close");
  take_worse(all, {2, "wrong", ""}, "over 2");
  EXPECT_EQ(measure_of(all).value, 2);
  EXPECT_EQ(measure_of(all).reason, "over 2: wrong");
}

}  // namespace
}  // namespace twinbench::energy_flow
