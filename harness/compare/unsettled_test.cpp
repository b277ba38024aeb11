// Elements that hang on a rounding, and gradients of which nothing is left: who is held to what.
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

TEST(GradientCancels, WhereTheBaselinesErrorIsMoreThanTheClassAllows) {
  const OutputSpec spec = output(Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0});
  at::manual_seed(4);
  const at::Tensor sums = at::randn({300}, at::kDouble), left = sums * 1e-6;  // of terms of about 1
  const at::Tensor error = 1e-7 * at::randn({300});
  EXPECT_FALSE(gradient_cancels(spec, sums, sums.to(at::kFloat) + error, Dtype::kFp32));
  EXPECT_TRUE(gradient_cancels(spec, left, left.to(at::kFloat) + error, Dtype::kFp32));
  EXPECT_TRUE(gradient_cancels(spec, at::zeros({300}, at::kDouble), error, Dtype::kFp32));
  // It changes no verdict: neither the case nor a candidate is accepted for it.
  EXPECT_EQ(compare(spec, left, left.to(at::kFloat) + error, left.to(at::kFloat), Dtype::kFp32).judgement,
            Judgement::kInvalid);
  const at::Tensor fair = sums * 1e-2;  // the baseline errs by 1e-5 of it, this candidate by 1e-3
  EXPECT_FALSE(compare(spec, fair, fair.to(at::kFloat) + error, fair.to(at::kFloat) * 1.001f, Dtype::kFp32).accepted());
}

}  // namespace
}  // namespace twinbench
