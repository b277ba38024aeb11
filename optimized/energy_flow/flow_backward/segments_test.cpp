// States kept every so many steps (C31) on both paths: bytes held at most beside the documented formula, how many steps
// are computed, the same bits, what a budget chooses and when it is refused.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "src/energy_flow/common/flow_work.h"
#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

constexpr std::int64_t kSteps = 10, kSamples = 2, kCells = 16, kHidden = 32, kLayers = 2;

// 32 flows of which none ends before the last step, at the unit configuration's widths.
Setting setting_with(double every, double budget, Device device, Options more = {}) {
  Setting setting;
  setting.input_case.name = "segments";
  setting.input_case.pass = Pass::kBackward;
  setting.input_case.sizes = {{"samples", kSamples}, {"height", 4},        {"width", 4},        {"quota", 32},
                              {"max_steps", kSteps}, {"hidden", kHidden},  {"layers", kLayers}, {"features", 64},
                              {"neuron_width", 32},  {"energy_width", 16}, {"head_width", 64}};
  setting.input_case.options = {{"ckpt_every", every}, {"tape_budget", budget},   {"spawn", 0},
                                {"scale", 0.01},       {"smallest_scale", 0.01},  {"noise", 0.05},
                                {"projection_age", 0}, {"convergence_enabled", 0}};
  for (const auto& [name, value] : more) setting.input_case.options[name] = value;
  setting.device = device;
  return completed(find_component("energy_flow.flow_backward").spec.signature, setting);
}

NamedTensors outputs_of(const Setting& setting) {
  const Component& component = find_component("energy_flow.flow_backward");
  const auto run =
      component.make(Variant::kOptimized, setting.device, generate_inputs(component.spec, setting, 5), setting);
  run->run();
  run->run();  // memory of the first run is used again
  NamedTensors outputs;
  for (const auto& [name, tensor] : run->outputs()) outputs.set(name, tensor.clone());
  return outputs;
}
std::int64_t told(const NamedTensors& outputs, Work column) {
  return outputs["work"].const_data_ptr<std::int64_t>()[column];
}

void expect_same_gradients(const NamedTensors& a, const NamedTensors& b, const std::string& of) {
  for (const auto& [name, tensor] : a)
    if (name != "work") {
      EXPECT_TRUE(tensor.equal(b[name])) << of << ": " << name;
    }
}

class Segments : public testing::TestWithParam<Device> {};

TEST_P(Segments, HoldWhatTheFormulaSaysAndComputeEachStepTwiceAtMost) {
  const NamedTensors whole = outputs_of(setting_with(0, 0, GetParam(), {{"keep_everything", 1}}));
  EXPECT_EQ(told(whole, kStepForwards), kSteps);
  EXPECT_EQ(told(whole, kTapePeak), told(whole, kTapeBytes));
  for (const std::int64_t every : {1, 2, 3, 5, 9, 10, 11}) {
    const NamedTensors of = outputs_of(setting_with(static_cast<double>(every), 0, GetParam()));
    const std::string name = "every " + std::to_string(every);
    expect_same_gradients(whole, of, name);
    const std::int64_t length = std::min(every, kSteps), segments = (kSteps + length - 1) / length;
    EXPECT_EQ(told(of, kStepForwards), kSteps + (segments - 1) * length) << name;
    EXPECT_LE(told(of, kStepForwards), 2 * kSteps) << name;
    EXPECT_EQ(told(of, kTapeLeft), 0) << name;
    EXPECT_LE(told(of, kTapeBytes), told(of, kTapePeak)) << name;
    // C31 with C34's floats of a state and of a step. Of 32 channels five integers of every step's row weigh something.
    const std::int64_t state = 4 + kLayers * kHidden, step = 72 + 5 * kLayers * kHidden + kHidden / 2;
    const auto modelled = static_cast<double>(4 * kSamples * kCells * (segments * state + length * step));
    const double ratio = static_cast<double>(told(of, kTapePeak)) / modelled;
    EXPECT_GE(ratio, 0.98) << name;
    EXPECT_LE(ratio, GetParam().is_simt() ? 1.06 : 1.02) << name;
  }
}

TEST_P(Segments, ABudgetTakesTheLongestThatFitsAndNamesWhatIsNeeded) {
  const NamedTensors whole = outputs_of(setting_with(0, 1e9, GetParam()));
  EXPECT_EQ(told(whole, kStepForwards), kSteps) << "all of it fits";
  double last = 1e9;
  for (const double share : {0.9, 0.6, 0.45}) {
    const double budget = std::floor(share * static_cast<double>(told(whole, kTapePeak)));
    const NamedTensors of = outputs_of(setting_with(0, budget, GetParam()));
    expect_same_gradients(whole, of, std::to_string(share));
    const auto peak = static_cast<double>(told(of, kTapePeak));
    EXPECT_LE(peak, budget) << share;
    EXPECT_LT(peak, last) << share;
    EXPECT_GT(told(of, kStepForwards), kSteps) << share;
    last = peak;
  }
  std::string need;
  try {
    outputs_of(setting_with(0, 1000, GetParam()));
    FAIL() << "a tape of 1,000 bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    const std::string what = error.what(), at_least = "at least ";
    EXPECT_NE(what.find("tape_budget"), std::string::npos) << what;
    ASSERT_NE(what.find(at_least), std::string::npos) << what;
    need = what.substr(what.find(at_least) + at_least.size());
  }
  EXPECT_NO_THROW(outputs_of(setting_with(0, std::stod(need), GetParam())));
  EXPECT_THROW(outputs_of(setting_with(0, std::stod(need) - 1, GetParam())), Error);
  EXPECT_THROW(outputs_of(setting_with(10, std::stod(need), GetParam())), Error) << "an interval that is given stays";
}

// Samples that stop inside a segment, children on both sides of its border.
TEST_P(Segments, RepeatWhoLivedAndWhoWasBorn) {
  const Options lives = {{"spawn", 1},   {"scale", 2},          {"movement_threshold", 0.1},
                         {"on_stop", 1}, {"projection_age", 5}, {"convergence_enabled", 1},
                         {"noise", 0.1}};
  Options kept = lives;
  kept["keep_everything"] = 1;
  const Setting whole = setting_with(0, 0, GetParam(), kept);
  const NamedTensors expected = outputs_of(whole);
  for (const double every : {1.0, 2.0, 3.0, 4.0})
    expect_same_gradients(expected, outputs_of(setting_with(every, 0, GetParam(), lives)), std::to_string(every));
  const Component& component = find_component("energy_flow.flow_backward");
  Setting flow_by_flow = whole;
  flow_by_flow.device = Device();
  const auto run =
      component.make(Variant::kBaseline, Device(), generate_inputs(component.spec, flow_by_flow, 5), flow_by_flow);
  run->run();
  const NamedTensors baseline = run->outputs();
  EXPECT_GT(told(baseline, kChildren), 8);
  EXPECT_GT(told(baseline, kStepForwards), 3);
}

// Two bytes for each number of a state, on the tape and where segments begin; gradients as without segments.
TEST_P(Segments, StatesOfTwoBytesTakeHalfTheRoom) {
  const auto stored = [&](std::int64_t every, double keeps) {
    return outputs_of(
        setting_with(static_cast<double>(every), 0, GetParam(), {{"hidden_dtype", 1}, {"keep_everything", keeps}}));
  };
  constexpr std::int64_t kFlows = kSamples * kCells, kSaved = kSteps * kFlows * kLayers * kHidden * 2;
  const NamedTensors expected = stored(0, 0);
  const NamedTensors floats = outputs_of(setting_with(0, 0, GetParam()));
  EXPECT_EQ(told(floats, kTapeBytes) - told(expected, kTapeBytes), kSaved);
  const NamedTensors whole = stored(0, 1);
  EXPECT_EQ(
      told(outputs_of(setting_with(0, 0, GetParam(), {{"keep_everything", 1}})), kTapeBytes) - told(whole, kTapeBytes),
      kSaved);
  expect_same_gradients(expected, whole, "everything kept");
  const std::vector<std::int64_t> lengths =
      GetParam().is_simt() ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{1, 3, 5};  // seconds a run there
  for (const std::int64_t every : lengths) {
    const NamedTensors of = stored(every, 0);
    expect_same_gradients(expected, of, "every " + std::to_string(every));
    const std::int64_t segments = (kSteps + every - 1) / every;
    const auto less =
        told(outputs_of(setting_with(static_cast<double>(every), 0, GetParam())), kTapePeak) - told(of, kTapePeak);
    EXPECT_EQ(less, (segments + every) * kFlows * kLayers * kHidden * 2) << every;
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, Segments, testing::Values(Device(), Device::simt()),
                         [](const auto& path) { return to_string(path.param); });

}  // namespace
}  // namespace twinbench::energy_flow::flow_backward
