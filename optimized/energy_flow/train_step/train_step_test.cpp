// What the engines do not ask of energy_flow.train_step: however a window's rows are split, its gradients are the same;
// the losses of the specification's example; windows go on from where the last one ended.
#define TWINBENCH_SIMT
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "kernels/common/captured_graph.h"
#include "src/energy_flow/common/optimizer_rule.h"
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

// Behind each of so many windows, one after another.
std::vector<NamedTensors> windows_of(Variant variant, Device device, const NamedTensors& inputs, Setting s,
                                     int windows) {
  s.device = device;
  const auto runnable = component().make(variant, device, inputs, s);
  runnable->start_over();
  std::vector<NamedTensors> all(static_cast<std::size_t>(windows));
  for (auto& copies : all) {
    runnable->run();
    for (const auto& [name, tensor] : runnable->outputs()) copies.set(name, tensor.clone());
  }
  return all;
}
NamedTensors outputs_of(Variant variant, Device device, const NamedTensors& inputs, const Setting& s, int windows = 1) {
  return windows_of(variant, device, inputs, s, windows).back();
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

// A window that is short of rows has the gradients of one that is made of the rows which are there.
void expect_mean_over_rows(const Setting& ragged, std::int64_t rows, const Setting& whole) {
  const NamedTensors inputs = generate_inputs(component().spec, ragged, 3);
  NamedTensors there = inputs;
  for (const char* name : {"input", "target", "sample_key"})
    there.set(name, inputs[name].narrow(0, 0, rows).contiguous());
  for (const auto& [variant, device] : kWays)
    EXPECT_LE(relative(outputs_of(variant, device, inputs, ragged)["gradients"],
                       outputs_of(variant, device, there, whole)["gradients"]),
              1e-4)
        << to_string(variant) << " " << to_string(device);
}

TEST(TrainStep, ARaggedWindowIsTheMeanOverItsRows) {
  for (const double scale : {3.0, 9.0}) {  // the latter: most displacements are clamped, and have no gradient
    SCOPED_TRACE(scale);
    expect_mean_over_rows(setting_of(3, 2, {{"missing_rows", 1}, {"accumulation", 4}, {"scale", scale}}), 5,
                          setting_of(1, 5, {{"scale", scale}}));
  }
}

// The CPU path cuts four rows into more pieces than five, each with sums of its own.
TEST(TrainStep, FourOfFiveRowsAreFour) {
  expect_mean_over_rows(setting_of(1, 5, {{"missing_rows", 1}}), 4, setting_of(1, 4));
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

// Nothing of what was issued has run when the last window's kernels are issued: a host that waited for one would wait
// for ever. Displacements shrink after the first window, and a window without a loss is not applied.
TEST(TrainStep, TheHostRunsAheadByWindows) {
  Setting s = setting_of(2, 2, {{"applied", 109}, {"smallest_scale", 0.5}, {"spawn", 1}, {"projection_age", 0}});
  s.device = Device::simt();
  const NamedTensors inputs = generate_inputs(component().spec, s, 3),
                     expected = outputs_of(Variant::kOptimized, s.device, inputs, s, 3);
  const auto ahead = component().make(Variant::kOptimized, s.device, inputs, s);
  ahead->start_over();
  const auto windows = kernels::captured_graph("windows", [&](kernels::Stream) {
    for (int window = 0; window < 3; ++window) ahead->run();
  });
  windows(kernels::current_host_stream());
  const NamedTensors outputs = ahead->outputs();
  EXPECT_EQ(outputs["counts"][kApplied].item<std::int64_t>(), 112);
  for (const char* name : {"parameters", "gradients", "counts", "loss"})
    EXPECT_TRUE(outputs[name].equal(expected[name])) << name;
}

// The weights of the specification's example: of four micro-steps a quarter each, of what three of four leave a third.
TEST(TrainStep, GradientsAreTheMeanOfTheMicroStepsThatCame) {
  const Setting four = setting_of(4, 1, {{"sanitise", 0}, {"clip", 0}}),
                three = setting_of(3, 1, {{"sanitise", 0}, {"clip", 0}, {"accumulation", 4}}),
                alone = setting_of(1, 1, {{"clip", 0}});
  NamedTensors inputs = generate_inputs(component().spec, four, 3);
  inputs["target"].select(0, 2).fill_(std::numeric_limits<float>::quiet_NaN());
  const auto rows = [&](std::int64_t from, std::int64_t count) {
    NamedTensors some = inputs;
    for (const char* name : {"input", "target", "sample_key"})
      some.set(name, inputs[name].narrow(0, from, count).contiguous());
    return some;
  };
  for (const auto& [variant, device] : kWays) {
    at::Tensor own[4];
    for (const std::int64_t i : {0, 1, 3}) own[i] = outputs_of(variant, device, rows(i, 1), alone)["gradients"];
    EXPECT_LE(relative(outputs_of(variant, device, inputs, four)["gradients"], (own[0] + own[1] + own[3]) / 4), 1e-5)
        << to_string(variant);
    EXPECT_LE(relative(outputs_of(variant, device, rows(0, 3), three)["gradients"], (own[0] + own[1]) / 3), 1e-5)
        << to_string(variant);
  }
}

TEST(TrainStep, AnInfiniteLossIsSkipped) {
  const Setting s = setting_of(2, 2);
  NamedTensors inputs = generate_inputs(component().spec, s, 3);
  inputs.set("mapper_offset", at::full({1}, 1e20f));
  for (const auto& [variant, device] : kWays) {
    const NamedTensors told = outputs_of(variant, device, inputs, s);
    EXPECT_TRUE(told["losses"].isinf().all().item<bool>()) << to_string(variant);
    EXPECT_EQ(told["record"][kSkippedMicro].item<std::int64_t>(), 2);
    EXPECT_EQ(told["record"][kStatus].item<std::int64_t>(), static_cast<std::int64_t>(WindowStatus::kNothingToApply));
    EXPECT_EQ(told["counts"][kApplied].item<std::int64_t>(), 10);
    EXPECT_TRUE(told["first_moment"].equal(inputs["first_moment"]));
  }
}

// Gradients of the scaled loss are beyond fp32, those of the loss itself are not.
TEST(TrainStep, AnOverflowHalvesTheLossScaleAndSkips) {
  const Setting plain = setting_of(2, 2), scaled = setting_of(2, 2, {{"loss_scaling", 1}});
  NamedTensors inputs = generate_inputs(component().spec, plain, 3);
  inputs.set("mapper_scale", at::full({1}, 1e9f));
  inputs["counts"].select(0, kScaleExponent).fill_(110);
  for (const auto& [variant, device] : kWays) {
    const NamedTensors told = outputs_of(variant, device, inputs, scaled);
    EXPECT_EQ(told["record"][kStatus].item<std::int64_t>(), static_cast<std::int64_t>(WindowStatus::kNotFinite))
        << to_string(variant);
    EXPECT_EQ(told["counts"][kScaleExponent].item<std::int64_t>(), 109);
    EXPECT_EQ(told["counts"][kGoodSteps].item<std::int64_t>(), 0);
    EXPECT_EQ(told["counts"][kSkippedSteps].item<std::int64_t>(),
              inputs["counts"][kSkippedSteps].item<std::int64_t>() + 1);
    EXPECT_TRUE(told["first_moment"].equal(inputs["first_moment"]));
    EXPECT_EQ(outputs_of(variant, device, inputs, plain)["record"][kStatus].item<std::int64_t>(),
              static_cast<std::int64_t>(WindowStatus::kApplied));
  }
}

TEST(TrainStep, TheLossScaleDoublesAfterSoManyGoodWindows) {
  const Setting plain = setting_of(2, 2, {{"good_windows", 2}}),
                scaled = setting_of(2, 2, {{"good_windows", 2}, {"loss_scaling", 1}});
  NamedTensors inputs = generate_inputs(component().spec, plain, 3);
  inputs["counts"].select(0, kGoodSteps).fill_(0);
  for (const auto& [variant, device] : kWays) {
    const std::int64_t expected[] = {16, 17, 17, 18};
    const auto with = windows_of(variant, device, inputs, scaled, 4),
               without = windows_of(variant, device, inputs, plain, 4);
    for (std::size_t window = 0; window < 4; ++window) {
      EXPECT_EQ(with[window]["counts"][kScaleExponent].item<std::int64_t>(), expected[window]) << to_string(variant);
      EXPECT_TRUE(with[window]["parameters"].equal(without[window]["parameters"]))
          << to_string(variant) << ", window " << window;
    }
  }
}

// The first two windows alone are looked through; what is found has a name, and changes nothing.
TEST(TrainStep, AnomaliesOfTheFirstWindowsAreNamed) {
  const Setting s = setting_of(2, 2, {{"sanitise", 0}, {"applied", 0}, {"clip", 0}}),
                off = setting_of(2, 2, {{"sanitise", 0}, {"applied", 0}, {"clip", 0}, {"anomaly_steps", 0}});
  NamedTensors inputs = generate_inputs(component().spec, s, 3);
  for (const std::int64_t count : {kSkippedSteps, kAttempts}) inputs["counts"].select(0, count).fill_(0);
  const auto found = [&](const Way& way, const NamedTensors& of, int windows) {
    const auto told = windows_of(way.variant, way.device, of, s, windows),
               untold = windows_of(way.variant, way.device, of, off, windows);
    std::vector<std::string> names;
    for (std::size_t window = 0; window < told.size(); ++window) {
      EXPECT_TRUE(told[window]["parameters"].equal(untold[window]["parameters"]));
      const at::Tensor anomaly = told[window]["anomaly"];
      names.push_back(std::to_string(anomaly[kAnomalyMicroStep].item<std::int64_t>()) + " " +
                      stage_name(anomaly[kAnomalyStage].item<std::int64_t>(), s));
    }
    return names;
  };
  using Names = std::vector<std::string>;
  NamedTensors bad_target = inputs, bad_offset = inputs, overflow = inputs;
  bad_target.set("target", inputs["target"].clone());
  bad_target["target"].select(0, 3).fill_(std::numeric_limits<float>::infinity());
  bad_offset.set("mapper_cell_offset", at::full_like(inputs["mapper_cell_offset"], 1e38f).mul(10));
  overflow.set("mapper_offset", at::full({1}, 1e20f));
  for (const Way& way : kWays) {
    EXPECT_EQ(found(way, inputs, 1), Names{"-1 none"}) << to_string(way.variant);
    EXPECT_EQ(found(way, bad_target, 3), (Names{"1 target", "1 target", "-1 none"})) << to_string(way.variant);
    EXPECT_EQ(found(way, bad_offset, 1), Names{"0 initial energies"}) << to_string(way.variant);
    EXPECT_EQ(found(way, overflow, 1), Names{"0 loss"}) << to_string(way.variant);
  }
  EXPECT_EQ(stage_name(kGradientStage, s), "gradient of coordinate_weight");
}

Setting unit() {
  Setting s;
  for (const Case& one : component().spec.cases)
    if (one.name == "unit") s.input_case = one;
  return completed(component().spec.signature, s);
}

// What lies on the heap of the thread that runs, after each window: the same from the third one on.
TEST(TrainStep, LiveBytesAreTheSameFromTheThirdWindowOn) {
  const Setting s = unit();
  const NamedTensors inputs = generate_inputs(component().spec, s, 3);
  const auto runnable = component().make(Variant::kOptimized, Device(), inputs, s);
  runnable->start_over();
  const auto live = [] {
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
  };
  for (int window = 0; window < 3; ++window) runnable->run();
  const std::size_t after_third = live();
  for (int window = 3; window < 8; ++window) {
    runnable->run();
    EXPECT_EQ(live(), after_third) << window;
  }
}

// Asked for; measured are more than a hundred, so that a busy machine does not decide.
TEST(TrainStep, IsThirtyTimesAsQuickAsTheBaseline) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizers slow our own code alone, not LibTorch's";
#endif
  const Setting s = unit();
  const NamedTensors inputs = generate_inputs(component().spec, s, 3);
  const auto seconds_of = [&](Variant variant, int runs) {
    const auto runnable = component().make(variant, Device(), inputs, s);
    runnable->start_over();
    if (runs > 1) runnable->run();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) runnable->run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / runs;
  };
  EXPECT_GE(seconds_of(Variant::kBaseline, 1), 30 * seconds_of(Variant::kOptimized, 10));
}

}  // namespace
}  // namespace twinbench::energy_flow::train_step
