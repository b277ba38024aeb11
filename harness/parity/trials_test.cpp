// What a trial of honest arithmetic moves, and no number off the bound that a case planted it on; which of its errors
// the rules take.
#include "harness/parity/trials.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "harness/parity/reference.h"
#include "harness/parity/test_component.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// The awkward energies of flow_backward: beyond -10 a clamp has no gradient, and what it had would widen every rule.
TEST(Trials, AWholeNumberIsNotMovedBeyondItself) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor planted = at::tensor({-10.0, 0.0, 1.0, kInfinity, -kInfinity}, at::kFloat);
  const at::Tensor drawn = at::tensor({-10.5, 0.1, 1.0000001, 1e-20, -3.7}, at::kFloat);
  const at::Tensor key = at::tensor({7, 8}, at::kLong);
  NamedTensors inputs;
  inputs.set("x", at::stack({planted, drawn}));
  inputs.set("key", key);
  bool inward = false;  // as sums of whole numbers that cancel err, too
  at::Tensor most = at::zeros(drawn.sizes(), at::kDouble);
  for (std::uint64_t trial = 1; trial <= 8; ++trial) {
    const NamedTensors moved = moved_inputs(inputs, trial);
    EXPECT_TRUE(moved["x"][0].abs().le(planted.abs()).all().item<bool>());
    inward = inward || !moved["x"][0].equal(planted);
    EXPECT_TRUE(moved["key"].equal(key));
    most = at::maximum(most, (moved["x"][1].to(at::kDouble) / drawn.to(at::kDouble) - 1).abs());
  }
  EXPECT_TRUE(inward);
  EXPECT_TRUE(most.gt(0).all().item<bool>()) << most;
  EXPECT_LE(most.max().item<double>(), 2 * kLastPlace);
}

constexpr float kStep = 0.3F;

class Stepped : public Runnable {
 public:
  Stepped(const NamedTensors& inputs, const Setting&) : x_(inputs["x"]) {}
  void run() override { y_ = x_ * 1.1 + x_.gt(kStep); }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  at::Tensor x_, y_;
};

// The first item lies on the step, and half of the trials take it over.
TEST(Trials, WhatIsSetAsideWidensNoRuleOfTheRest) {
  Component component = test_component<Stepped, Stepped>(
      "stepped", {
                     .sizes = {{"n", 0}},
                     .inputs = {data("x", "n", from_case(1))},
                     .outputs = {output("y", "n", {Tolerance::Kind::kGradient, {1e-2, 0}, {1e-2, 0}, "test"})},
                 });
  component.spec.dtypes = {Dtype::kFp32};
  component.spec.batch_size = "n";
  component.spec.ambiguous = [](const NamedTensors& outputs, const Setting&) {
    return outputs["y"].lt(kStep * 1.1 + 1e-4);
  };
  Setting setting;
  setting.input_case.name = "any";
  setting.input_case.sizes = {{"n", 200}};
  NamedTensors generated;
  generated.set("x", at::cat({at::full({1}, kStep), at::linspace(0.4, 1, 199)}));
  const Reference reference(component, setting, generated);
  ASSERT_EQ(reference.set_aside("y").nonzero().flatten().item<std::int64_t>(), 0);
  const auto judged = [&](std::int64_t item, float by) {
    NamedTensors outputs = reference.baseline_run();
    outputs.set("y", outputs["y"].clone());
    outputs["y"][item].add_(by);
    CheckResult result;
    reference.judge(outputs, result);
    return result.verdict;
  };
  EXPECT_EQ(judged(0, 1), CheckVerdict::kPass) << "it may go either way";
  EXPECT_EQ(judged(100, 0), CheckVerdict::kPass);
  EXPECT_EQ(judged(100, 2e-5F), CheckVerdict::kFail);
}

}  // namespace
}  // namespace twinbench
