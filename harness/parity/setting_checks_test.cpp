// Refusals name the field that they are due to; ways that set-up could have taken are tried on the way back, too.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "harness/parity/parity.h"
#include "harness/parity/test_component.h"
#include "src/common/choice.h"
#include "src/common/error.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

enum class Fault { kNone, kOtherWay, kOtherWayBack };
Fault g_fault = Fault::kNone;

// y = 2 x, for which there are two ways.
template <bool kFaulty>
class TwoWays : public Runnable {
 public:
  TwoWays(const NamedTensors& inputs, const Setting& setting) : inputs_(inputs), backward_(setting.backward()) {
    if (inputs["x"].numel() > 0 && inputs["x"][0].item<double>() > 100)
      throw Error(ErrorKind::kOutOfRange, "x", "above 100", "give less");
    if (!kFaulty) return;
    other_ = demanded_way() == "other";
    announce_choice({"two times", {"usual", "other"}, other_ ? "other" : "usual", "by the test"});
  }
  void run() override {
    y_ = inputs_[backward_ ? "grad_y" : "x"] * 2;
    if (other_ && g_fault == (backward_ ? Fault::kOtherWayBack : Fault::kOtherWay)) y_ = y_ + 1;
  }
  NamedTensors outputs() override { return {{backward_ ? "grad_x" : "y", y_}}; }

 private:
  const NamedTensors inputs_;
  const bool backward_;
  bool other_ = false;
  at::Tensor y_;
};

Component two_ways(const std::string& refused_field) {
  Component component = test_component<TwoWays<false>, TwoWays<true>>(
      "two_ways", {.sizes = {{"n", 1}},
                   .inputs = {data("x", "n", from_case(1))},
                   .outputs = {output("y", "n", {Tolerance::Kind::kBound, {0, 1e-6}, {0, 1e-6}, "test"})
                                   .batch(std::nullopt)
                                   .with_gradient(2)}});
  component.spec.refusals = {{"numbers above 100", [](NamedTensors& inputs, Setting&) { inputs["x"].fill_(101); },
                              ErrorKind::kOutOfRange, refused_field}};
  return component;
}

CheckVerdict verdict_of(const std::string& check, Pass pass, const std::string& refused_field = "x") {
  Setting setting;
  setting.input_case.name = "only";
  setting.input_case.sizes = {{"n", 50}};
  setting.input_case.pass = pass;
  Component component = two_ways(refused_field);
  component.spec.cases = {setting.input_case};  // refusals are checked with the first
  for (const auto& row : check_cell(component, Variant::kOptimized, setting, 1, {.checks = {check}}))
    if (row.check == check) return row.verdict;
  return CheckVerdict::kError;
}

TEST(Ways, OneThatSetUpDoesNotTakeHereIsJudgedInBothPasses) {
  for (const auto [fault, pass] :
       {std::pair{Fault::kOtherWay, Pass::kForward}, {Fault::kOtherWayBack, Pass::kBackward}}) {
    g_fault = Fault::kNone;
    EXPECT_EQ(verdict_of("ways", pass), CheckVerdict::kPass);
    g_fault = fault;
    EXPECT_EQ(verdict_of("ways", pass), CheckVerdict::kFail);
  }
  g_fault = Fault::kNone;
}

TEST(Refusals, AnotherFieldThanTheDeclaredOneIsAnotherError) {
  EXPECT_EQ(verdict_of("refusal", Pass::kForward, "x"), CheckVerdict::kPass);
  EXPECT_EQ(verdict_of("refusal", Pass::kForward, "n"), CheckVerdict::kFail);
}

}  // namespace
}  // namespace twinbench
