// Elements that hang on a rounding, lucky baselines, classes out of reach: who is held to what.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "harness/compare/compare.h"

namespace twinbench {
namespace {

OutputSpec output(Tolerance::Kind kind, Bound fp32, Bound bf16) {
  OutputSpec spec;
  spec.name = "y";
  spec.tolerance.kind = kind;
  spec.tolerance.fp32 = fp32;
  spec.tolerance.bf16 = bf16;
  return spec;
}

TEST(Unsettled, OnlyMarkedElementsMayDifferByAFlip) {
  at::manual_seed(3);
  const at::Tensor oracle = at::randn({40, 50}, at::kDouble), baseline = oracle.to(at::kFloat) * (1 + 1e-7);
  const OutputSpec spec = output(Tolerance::Kind::kBound, {2e-5, 5e-6}, {2e-2, 5e-3});
  at::Tensor open = at::zeros({40, 50}, at::kBool), flipped = baseline.clone();
  open[7][9] = true;
  const auto judged = [&](const at::Tensor& marks) {
    return compare(spec, oracle, baseline, flipped, Dtype::kBf16, marks).accepted();
  };
  EXPECT_TRUE(judged(open));
  flipped[7][9] *= 1.004;  // a unit in bf16's last place
  EXPECT_TRUE(judged(open));
  EXPECT_FALSE(judged(at::zeros({40, 50}, at::kBool))) << "a settled element is held to fp32";
  flipped[7][9] += 0.1;
  EXPECT_FALSE(judged(open)) << "a flip is bounded too";
  EXPECT_FALSE(judged(at::zeros({50, 40}, at::kBool))) << "marks of another shape";
}

TEST(Unsettled, AMarkedElementOfANegligibleGradientIsBounded) {
  const at::Tensor oracle = at::full({20}, 1e-9, at::kDouble), baseline = at::full({20}, 3e-9);
  const OutputSpec spec = output(Tolerance::Kind::kGradient, {1e-4, 1e-6}, {5e-2, 1e-3});
  const at::Tensor open = at::ones({20}, at::kBool).slice(0, 0, 20);
  at::Tensor some = open.clone(), wrong = baseline.clone();
  some[0] = false;
  ASSERT_TRUE(compare(spec, oracle, baseline, baseline, Dtype::kBf16, some).negligible);
  wrong[3] = 1;
  EXPECT_FALSE(compare(spec, oracle, baseline, wrong, Dtype::kBf16, some).accepted());
}

// Of a gradient all that is not 0 hangs on roundings; what does not is 0, and the baseline's is what cancels in fp32.
TEST(Unsettled, SettledDerivativesThatVanishAreAsLargeAsRoundingMakesThemInTheWhole) {
  at::manual_seed(6);
  at::Tensor oracle = at::randn({1000}, at::kDouble) * 1e-4, open = at::ones({1000}, at::kBool);
  oracle.narrow(0, 0, 100).zero_(), open.narrow(0, 0, 100).fill_(false);
  const at::Tensor baseline = (oracle + 1e-12 * at::randn({1000}, at::kDouble)).to(at::kFloat);
  const OutputSpec spec = output(Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0});
  const auto judged = [&](const at::Tensor& candidate) {
    return compare(spec, oracle, baseline, candidate, Dtype::kBf16, open);
  };
  EXPECT_TRUE(judged(baseline).accepted()) << judged(baseline).reason;
  at::Tensor wrong = baseline.clone();
  wrong[3] = 1e-6;
  EXPECT_EQ(judged(wrong).judgement, Judgement::kRejected) << "a settled 0 that is none";
  EXPECT_EQ(judged(-baseline).judgement, Judgement::kRejected);
}

TEST(Honest, ALuckyBaselineLeavesHonestArithmeticItsError) {
  at::manual_seed(4);
  const at::Tensor oracle = at::randn({40, 50}, at::kDouble), baseline = oracle.to(at::kFloat);
  const at::Tensor error = at::randn({40, 50}, at::kDouble).sign() * 2e-5,
                   honest = at::full({40, 50}, 1e-5, at::kDouble);
  const OutputSpec spec = output(Tolerance::Kind::kBound, {1e-3, 1e-3}, {});
  const auto judged = [&](double times, const at::Tensor& known) {
    return compare(spec, oracle, baseline, (oracle + times * error).to(at::kFloat), Dtype::kFp32, {}, known).accepted();
  };
  EXPECT_FALSE(judged(1, {})) << "the baseline has no error, so that nobody may";
  EXPECT_TRUE(judged(0.9, honest));
  EXPECT_FALSE(judged(5, honest)) << "ten times what is honest";
  EXPECT_FALSE(judged(1, honest.slice(0, 0, 20).contiguous())) << "honest errors of another shape";
  OutputSpec strict = spec;
  strict.tolerance.fp32 = {1e-6, 1e-6};
  EXPECT_FALSE(compare(strict, oracle, baseline, (oracle + error).to(at::kFloat), Dtype::kFp32, {}, honest).accepted())
      << "the specification's bound is no wider for it";
}

TEST(BeyondClass, WhereHonestErrorsAreMoreThanTheSpecificationAllows) {
  at::manual_seed(5);
  const at::Tensor oracle = at::randn({300}, at::kDouble), small = at::full({300}, 1e-8, at::kDouble);
  at::Tensor one = small.clone(), open = at::zeros({300}, at::kBool);
  one[17] = 1e-3;
  open[17] = true;
  const OutputSpec bound = output(Tolerance::Kind::kBound, {2e-5, 5e-6}, {2e-2, 5e-3});
  const OutputSpec gradient = output(Tolerance::Kind::kGradient, {1e-4, 1e-6}, {5e-2, 1e-3});
  EXPECT_EQ(beyond_class(bound, oracle, Dtype::kFp32, {}, small), "");
  EXPECT_NE(beyond_class(bound, oracle, Dtype::kFp32, {}, one).find("element 17"), std::string::npos);
  EXPECT_EQ(beyond_class(bound, oracle, Dtype::kBf16, open, one), "") << "it is not settled";
  EXPECT_EQ(beyond_class(gradient, oracle, Dtype::kFp32, {}, small), "");
  EXPECT_NE(beyond_class(gradient, oracle, Dtype::kFp32, {}, one), "");
  EXPECT_NE(beyond_class(gradient, oracle * 1e-4, Dtype::kFp32, {}, small * 100), "") << "its terms cancel";
  EXPECT_EQ(beyond_class(gradient, oracle * 1e-10, Dtype::kFp32, {}, small), "") << "negligible";
}

}  // namespace
}  // namespace twinbench
