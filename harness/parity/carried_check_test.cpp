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

// state <- state + input / 1000 (`tiny`: / 10^7, where fp32 rounds most of a step away), but for the optimized
// one's mistake, from its second run on.
enum Mistake {
  kNone,
  kKeepsItsInput,
  kStaysAtReset,
  kShortStep,
  kNoGradient,
  kShortFromFifth,
  kManySteps,
  kShortFromTwelfth
};
template <bool kMistaken>
class Stepping : public Runnable {
 public:
  Stepping(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        kept_(inputs["input"].clone()),
        step_(setting.on("tiny") ? 1e-7 : 1e-3),
        backward_(setting.backward()),
        mistake_(kMistaken ? static_cast<int>(setting.option("mistake")) : kNone) {
    Stepping::reset();
  }
  void run() override {
    const bool later = runs_++ > 0, is_short = (later && mistake_ == kShortStep) ||
                                               (runs_ > 4 && mistake_ == kShortFromFifth) ||
                                               (runs_ > 11 && mistake_ == kShortFromTwelfth);
    const at::Tensor step = (mistake_ == kKeepsItsInput ? kept_ : inputs_["input"]) *
                            (later && mistake_ == kManySteps ? 300 * step_ : step_);
    state_ = state_ + (is_short ? 0.7 * step : step);
    if (backward_ && !(later && mistake_ == kNoGradient)) gradient_ = inputs_["grad_state"] * step_;
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
  const double step_;
  const bool backward_;
  const int mistake_;
  int runs_ = 0;
};

Component stepping() {
  return test_component<Stepping<false>, Stepping<true>>(
      "stepping",
      {
          .sizes = {{"n", 0}},
          .options = {count_option("mistake", 0, 0, 7, "of the optimized variant"),
                      switch_option("tiny", false, "steps that fp32 rounds away")},
          .inputs = {state("state", "n", from_case(1)), data("input", "n", from_case(2)).batch(std::nullopt)},
          .outputs = {output("state", "n", {Tolerance::Kind::kBound, {0, 1e-3}, {0, 1e-3}, "test"})
                          .batch(std::nullopt)
                          .with_gradient(3)
                          .advanced()},
      });
}

CheckResult carried_row(const Component& component, Options options, Pass pass = Pass::kForward,
                        const std::string& sample = "") {
  Setting setting;
  setting.input_case.name = "only";
  setting.input_case.sizes = {{"n", 50}};
  setting.input_case.options = std::move(options);
  setting.input_case.pass = pass;
  const auto rows = check_cell(component, Variant::kOptimized, setting, 1, {.checks = {"carried"}, .sample = sample});
  for (const auto& row : rows)
    if (row.check == "carried") return row;
  return {};
}

CheckVerdict carried(const Component& component, Options options, Pass pass = Pass::kForward) {
  const CheckResult row = carried_row(component, std::move(options), pass);
  return row.check.empty() ? CheckVerdict::kError : row.verdict;
}

TEST(Carried, BoundGrowsWithTheState) {
  EXPECT_EQ(carried(growing(), {{"idle", 0}}), CheckVerdict::kPass);
  EXPECT_EQ(carried(growing(), {{"idle", 1}}), CheckVerdict::kFail);
}

TEST(Carried, InputsChangeBetweenRunsAndResetGivesTheFirstOneAgain) {
  EXPECT_EQ(carried(stepping(), {{"mistake", kNone}}), CheckVerdict::kPass);
  EXPECT_EQ(carried(stepping(), {{"mistake", kKeepsItsInput}}), CheckVerdict::kFail);
  EXPECT_EQ(carried(stepping(), {{"mistake", kStaysAtReset}}), CheckVerdict::kFail);
}

TEST(Carried, AStepIsJudgedWhereTheClassAllowsMoreThanIt) {
  const CheckResult row = carried_row(stepping(), {{"mistake", kShortStep}});
  EXPECT_EQ(row.verdict, CheckVerdict::kFail);
  EXPECT_NE(row.reason.find("its last step is off"), std::string::npos) << row.reason;
}

// A step that rounding hides may come out as long as the baseline's error, not as hundreds of it.
TEST(Carried, AStepThatRoundingHidesIsHeldToTheBaselinesError) {
  EXPECT_EQ(carried(stepping(), {{"tiny", 1}}), CheckVerdict::kPass);
  const CheckResult row = carried_row(stepping(), {{"tiny", 1}, {"mistake", kManySteps}});
  EXPECT_EQ(row.verdict, CheckVerdict::kFail);
  EXPECT_NE(row.reason.find("its last step is off"), std::string::npos) << row.reason;
}

// Step by step: what ten runs may be off by together says nothing of one.
TEST(Carried, ARunLaterThanTheSeriesIsJudgedFromTheStateItFound) {
  EXPECT_EQ(carried(stepping(), {{"mistake", kShortFromFifth}}), CheckVerdict::kFail);
}

// Which run is drawn by the revision: nothing is wrong late enough for all of them.
TEST(Carried, TheLaterRunIsAnotherInAnotherRevision) {
  int failed = 0;
  constexpr int kRevisions = 20;
  for (int revision = 0; revision < kRevisions; ++revision)
    failed +=
        carried_row(stepping(), {{"mistake", kShortFromTwelfth}}, Pass::kForward, std::to_string(revision)).verdict ==
        CheckVerdict::kFail;
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, kRevisions);
}

TEST(Carried, ALaterWayBackIsDone) {
  EXPECT_EQ(carried(stepping(), {{"mistake", kNone}}, Pass::kBackward), CheckVerdict::kPass);
  EXPECT_EQ(carried(stepping(), {{"mistake", kNoGradient}}, Pass::kBackward), CheckVerdict::kFail);
}

}  // namespace
}  // namespace twinbench
