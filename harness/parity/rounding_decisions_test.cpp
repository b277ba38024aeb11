// What an honest error before a rounding may change is marked; what a dishonest one changes is not excused.
#include "harness/parity/rounding_decisions.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/compare/inputs.h"
#include "harness/parity/reference.h"
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
