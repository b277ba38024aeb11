// What an honest error before a rounding may change is marked; what a dishonest one changes is not excused.
#include "harness/parity/rounding_decisions.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/compare/inputs.h"
#include "harness/parity/reference.h"
#include "harness/parity/test_component.h"
#include "src/common/error.h"
#include "src/draws.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// Rounds what is off by `share` of itself, up and down in turn.
class Nudging final : public RoundingObserver {
 public:
  explicit Nudging(double share) : share_(share) {}
  at::Tensor observe(const at::Tensor& values, Dtype mode) override {
    const at::NoGradGuard no_grad;
    const at::Tensor signs = at::arange(values.numel()).remainder(2).mul(2).sub(1).reshape(values.sizes());
    return rounded_unobserved(values * (1 + share_ * signs), mode);
  }

 private:
  double share_;
};

struct Carrier {
  const Component& component = find_component("energy_flow.energy_carrier");
  Setting setting;
  NamedTensors generated;
  Carrier() {
    for (const auto& one : component.spec.cases)
      if (one.name == "odd") setting = completed(component.spec.signature, {one, Dtype::kBf16});
    generated = generated_inputs(component.spec, setting, 1);
  }
};

TEST(RoundingDecisions, HonestErrorsMoveMarkedElementsOnly) {
  const Carrier carrier;
  const Reference reference(carrier.component, carrier.setting, carrier.generated);
  const at::Tensor& open = reference.unsettled("output");
  ASSERT_TRUE(open.defined());
  const double marked = open.to(at::kDouble).mean().item<double>();
  EXPECT_LT(marked, 0.9) << "some elements are settled";
  const auto with = [&](double share) {
    const Nudging nudging(share);
    return baseline_outputs(carrier.component, carrier.setting, carrier.generated);
  };
  const auto judged = [&](const NamedTensors& outputs) {
    CheckResult result;
    reference.judge(outputs, result);
    return result.verdict == CheckVerdict::kPass;
  };
  EXPECT_TRUE(judged(with(0)));
  EXPECT_TRUE(judged(with(0x1p-24)));
  EXPECT_FALSE(judged(with(0x1p-9))) << "half a unit of bf16, everywhere";
}

// Those that the harness looks at in a loop, one by one.
TEST(RoundingDecisions, ANumberRoundsAsATensorOfItDoes) {
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor ties = at::tensor({0.0, -0.0, 1.00390625, 1.01171875, 1 + 0x1p-11, 1 + 3 * 0x1p-11, 65519.0, 65520.0,
                                      1e-8, 6e-8, 1e-40, 3.4e38, 1e300, infinity, -infinity});
  const at::Tensor values = at::cat({ties, draws::drawn("heavy_tail", {2000}, 7, 1).to(at::kDouble) * (1 + 0x1p-30)});
  for (const Dtype mode : {Dtype::kBf16, Dtype::kFp16, Dtype::kTf32}) {
    const at::Tensor wanted = rounded_unobserved(values, mode);
    for (std::int64_t i = 0; i < values.numel(); ++i)
      EXPECT_EQ(rounded_unobserved(values[i].item<double>(), mode), wanted[i].item<double>())
          << to_string(mode) << " of " << values[i].item<double>();
    EXPECT_TRUE(std::isnan(rounded_unobserved(std::nan(""), mode)));
  }
}

class Rounds : public Runnable {
 public:
  Rounds(const NamedTensors& inputs, const Setting& setting) : x_(inputs["x"]), setting_(setting) {}
  void run() override { y_ = rounded(x_, setting_.rounds_as()); }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  at::Tensor x_, y_;
  const Setting setting_;
};

// One rounding's operand, 256 columns of halves but for these: what the oracle has there, what the baseline computes.
TEST(RoundingDecisions, ARoundingIsOpenWhereAnHonestErrorMayCrossATie) {
  constexpr double kTie = 1 + 0x1p-8, kInfinity = std::numeric_limits<double>::infinity();  // of bf16
  const struct {
    std::int64_t row, column;
    double right, computed;
    bool open;
    const char* why;
  } spots[] = {
      {0, 0, kTie + 0x1p-23 + 0x1p-30, kTie + 0x1p-23, true, "two last places reach over the tie below"},
      {0, 1, kTie - 0x1p-23 - 0x1p-30, kTie - 0x1p-23, true, "over the one above"},
      {0, 2, kTie + 0x1p-19 + 0x1p-30, kTie + 0x1p-19, false, "sixteen last places are no error of this row"},
      {0, 3, kTie + 0x1p-23, kTie + 0x1p-23, false, "no arithmetic has touched it"},
      {0, 4, kTie + 0x1p-23, kTie + 0x1p-22, true, "fp32 holds it, and computes another number"},
      {0, 5, kInfinity, kInfinity, false, "nothing moves it, and the row has the errors that it has"},
      {0, 6, std::nan(""), std::nan(""), false, "likewise"},
      {0, 7, kTie + 0x1p-16 + 0x1p-30, kTie + 0x1p-16, false, "the next row's errors are not this one's"},
      {1, 0, kTie + 0x1p-16 + 0x1p-30, kTie + 0x1p-16, true, "eight times the row's own error reaches over it"},
      {1, 1, 0.75, 0.75 + 0x1p-10, false, "the error of that row"},
      {2, 0, 1.002, 1.005, true, "it is rounded elsewhere itself, eight times the row's error is less"},
      {3, 0, 0x1p-10 * kTie + 0x1p-24 + 0x1p-45, 0x1p-10 * kTie + 0x1p-24, true, "last places of the row's numbers"},
  };
  at::Tensor right = at::full({4, 256}, 0.5, at::kDouble), expected = at::zeros(right.sizes(), at::kBool);
  at::Tensor computed = right.clone();
  for (const auto& spot : spots) {
    right[spot.row][spot.column] = spot.right, computed[spot.row][spot.column] = spot.computed;
    expected[spot.row][spot.column] = spot.open;
  }
  Component component = test_component<Rounds, Rounds>(
      "rounds",
      {.sizes = {{"n", 0}}, .inputs = {data("x", "n,256", from_case(1))}, .outputs = {output("y", "n,256", {})}});
  component.spec.dtypes = {Dtype::kBf16};
  Setting setting;
  setting.dtype = Dtype::kBf16;
  setting.input_case.name = "any";
  setting.input_case.sizes = {{"n", 4}};
  NamedTensors generated;
  generated.set("x", computed.to(at::kFloat));
  RoundingLog log;
  log.operands = {right};
  const auto roundings = open_roundings(component, setting, generated, log);
  ASSERT_EQ(roundings.size(), 1u);
  ASSERT_TRUE(roundings[0].open.defined());
  for (const auto& spot : spots)
    EXPECT_EQ(roundings[0].open[spot.row][spot.column].item<bool>(), spot.open)
        << "row " << spot.row << ", column " << spot.column << ": " << spot.why;
  EXPECT_TRUE(roundings[0].open.equal(expected)) << "the halves are settled";
}

TEST(RoundingDecisions, ABaselineThatRoundsOtherTensorsInFp64IsNamed) {
  const Carrier carrier;
  const Setting oracle = oracle_setting(carrier.setting);
  RoundingLog log;
  {
    RoundingRecorder recorder;
    (void)baseline_outputs(carrier.component, oracle, carrier.generated);
    log = recorder.log;
  }
  ASSERT_FALSE(log.operands.empty());
  const auto named = [&](const RoundingLog& other) {
    try {
      (void)open_roundings(carrier.component, carrier.setting, carrier.generated, other);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::kInternal;
    }
    return false;
  };
  EXPECT_FALSE(named(log));
  log.operands.emplace_back();
  EXPECT_TRUE(named(log));
  log.operands.resize(log.operands.size() - 2);
  EXPECT_TRUE(named(log));
}

}  // namespace
}  // namespace twinbench
