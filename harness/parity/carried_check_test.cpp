// States from run to run: a bound grows with its state, steps are judged, work that a later run leaves out is seen.
// Inputs change between the runs, and reset() must give the first one back.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/parity/parity.h"
#include "harness/parity/test_component.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

constexpr double kGrowth = 8;

// state <- 8 state, rounded once or, by a detour over larger numbers, to some places of the largest; `idle`: in the
// first run alone.
template <bool kDetour>
class Growing : public Runnable {
 public:
  Growing(const NamedTensors& inputs, const Setting& setting)
      : given_(inputs["state"]), idle_(kDetour && setting.on("idle")) {}
  void run() override {
    const bool first = !state_.defined();
    if (first) state_ = given_;
    if (!first && idle_) return;
    state_ = state_ * kGrowth;
    if (!kDetour) return;
    const at::Tensor far = state_.abs().max() * 8;
    state_ = (state_ + far) - far;
  }
  NamedTensors outputs() override { return {{"state", state_}}; }
  void reset() override { state_ = at::Tensor(); }

 private:
  at::Tensor given_, state_;
  const bool idle_;
};

Component growing() {
  Component component = test_component<Growing<false>, Growing<true>>(
      "growing", {
                     .sizes = {{"n", 0}},
                     .options = {switch_option("idle", false, "later runs do nothing")},
                     .inputs = {state("state", "n", from_case(1))},
                     .outputs = {output("state", "n", {Tolerance::Kind::kBound, {0, 1e-6}, {0, 1e-6}, "test"})
                                     .batch(std::nullopt)},
                 });
  component.spec.bound_factor = [](const std::string&, const NamedTensors& inputs, const Setting&) {
    return std::clamp(kGrowth * inputs["state"].abs().max().item<double>(), 1.0, 1e6);
  };
  return component;
}

// state <- state + input / 1000, but for the optimized one's mistake, from its second run on.
enum Mistake { kNone, kKeepsItsInput, kStaysAtReset, kHalfAStep, kNoGradient };
template <bool kMistaken>
class Stepping : public Runnable {
 public:
  Stepping(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        kept_(inputs["input"].clone()),
        backward_(setting.backward()),
        mistake_(kMistaken ? static_cast<int>(setting.option("mistake")) : kNone) {
    Stepping::reset();
  }
  void run() override {
    const bool later = runs_++ > 0;
    const at::Tensor step = (mistake_ == kKeepsItsInput ? kept_ : inputs_["input"]) / 1000;
    state_ = state_ + (later && mistake_ == kHalfAStep ? step / 2 : step);
    if (backward_ && !(later && mistake_ == kNoGradient)) gradient_ = inputs_["grad_state"] / 1000;
  }
  NamedTensors outputs() override {
    return backward_ ? NamedTensors{{"grad_input", gradient_}} : NamedTensors{{"state", state_}};
  }
  void reset() override {
    if (mistake_ == kStaysAtReset && runs_ > 1) return;
    state_ = inputs_["state"].clone();
    gradient_ = at::zeros_like(state_);
    runs_ = 0;
  }

 private:
  const NamedTensors inputs_;
  at::Tensor kept_, state_, gradient_;
  const bool backward_;
  const int mistake_;
  int runs_ = 0;
};

Component stepping() {
  return test_component<Stepping<false>, Stepping<true>>(
      "stepping",
      {
          .sizes = {{"n", 0}},
          .options = {count_option("mistake", 0, 0, 4, "of the optimized variant")},
          .inputs = {state("state", "n", from_case(1)), data("input", "n", from_case(2)).batch(std::nullopt)},
          .outputs = {output("state", "n", {Tolerance::Kind::kBound, {0, 1e-3}, {0, 1e-3}, "test"})
                          .batch(std::nullopt)
                          .with_gradient(3)
                          .advanced()},
      });
}

CheckVerdict carried(const Component& component, const std::string& option, double value, Pass pass = Pass::kForward) {
  Setting setting;
  setting.input_case.name = "only";
  setting.input_case.sizes = {{"n", 50}};
  setting.input_case.options = {{option, value}};
  setting.input_case.pass = pass;
  const auto rows = check_cell(component, Variant::kOptimized, setting, 1, {.checks = {"carried"}});
  for (const auto& row : rows)
    if (row.check == "carried") return row.verdict;
  return CheckVerdict::kError;
}

TEST(Carried, BoundGrowsWithTheState) {
  EXPECT_EQ(carried(growing(), "idle", 0), CheckVerdict::kPass);
  EXPECT_EQ(carried(growing(), "idle", 1), CheckVerdict::kFail);
}

TEST(Carried, InputsChangeBetweenRunsAndResetGivesTheFirstOneAgain) {
  EXPECT_EQ(carried(stepping(), "mistake", kNone), CheckVerdict::kPass);
  EXPECT_EQ(carried(stepping(), "mistake", kKeepsItsInput), CheckVerdict::kFail);
  EXPECT_EQ(carried(stepping(), "mistake", kStaysAtReset), CheckVerdict::kFail);
}

TEST(Carried, AStepIsJudgedWhereTheClassAllowsMoreThanIt) {
  EXPECT_EQ(carried(stepping(), "mistake", kHalfAStep), CheckVerdict::kFail);
}

TEST(Carried, ALaterWayBackIsDone) {
  EXPECT_EQ(carried(stepping(), "mistake", kNone, Pass::kBackward), CheckVerdict::kPass);
  EXPECT_EQ(carried(stepping(), "mistake", kNoGradient, Pass::kBackward), CheckVerdict::kFail);
}

}  // namespace
}  // namespace twinbench
