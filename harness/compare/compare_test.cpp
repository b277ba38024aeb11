// The comparison rules: what each must reject, what they must let pass, and when they call the case invalid.
#include "harness/compare/compare.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

OutputSpec output(Tolerance::Kind kind = Tolerance::Kind::kBound, Bound bound = {2e-5, 2e-6}) {
  OutputSpec spec;
  spec.name = "y";
  spec.tolerance.kind = kind;
  spec.tolerance.fp32 = bound;
  return spec;
}

struct Twin {
  at::Tensor oracle, baseline;
};

// A product in fp64 and in fp32: a baseline with an honest rounding error.
Twin product(std::int64_t rows = 70, std::int64_t inner = 64) {
  at::manual_seed(7);
  const at::Tensor a = at::randn({rows, inner}), b = at::randn({inner, 50});
  return {at::matmul(a.to(at::kDouble), b.to(at::kDouble)), at::matmul(a, b)};
}

Comparison judge(const Twin& twin, const at::Tensor& candidate, const OutputSpec& spec = output(),
                 Dtype dtype = Dtype::kFp32) {
  return compare(spec, twin.oracle, twin.baseline, candidate, dtype);
}

TEST(Compare, AcceptsTheBaselineAndRounding) {
  const Twin twin = product();
  const auto same = judge(twin, twin.baseline);
  EXPECT_TRUE(same.accepted()) << same.reason;
  EXPECT_EQ(same.elements, 3500);
  EXPECT_GT(same.rmse, 0);
  EXPECT_EQ(same.rmse, same.rmse_baseline);
  EXPECT_LE(same.worst_ratio, 1);
  EXPECT_TRUE(judge(twin, twin.oracle.to(at::kFloat)).accepted());
}

// A class may ask for less than half a place: the nearest number that there is passes, the next one does not.
TEST(Compare, TheNearestNumberIsNearEnough) {
  const Twin twin = product();
  const OutputSpec narrow = output(Tolerance::Kind::kBound, {0, 1e-12});
  const at::Tensor nearest = twin.oracle.to(at::kFloat);
  const auto exact = judge(twin, nearest, narrow);
  EXPECT_TRUE(exact.accepted()) << exact.reason;
  EXPECT_EQ(judge({twin.oracle, nearest}, nearest * (1 + 0x1p-22), narrow).judgement, Judgement::kRejected);
}

TEST(Compare, Structure) {
  const Twin twin = product();
  EXPECT_NE(judge(twin, twin.baseline.narrow(0, 0, 69).contiguous()).reason.find("shape [69, 50]"), std::string::npos);
  EXPECT_NE(judge(twin, twin.baseline.to(at::kDouble)).reason.find("dtype Double"), std::string::npos);
  EXPECT_NE(judge(twin, twin.baseline.t().contiguous().t()).reason.find("contiguous"), std::string::npos);
  EXPECT_NE(judge(twin, twin.baseline.to(at::kMeta)).reason.find("device meta"), std::string::npos);
  EXPECT_NE(judge(twin, at::Tensor()).reason.find("no tensor"), std::string::npos);
  EXPECT_NE(judge(twin, twin.baseline.clone().set_requires_grad(true)).reason.find("autograd"), std::string::npos);
}

TEST(Compare, OneNanOrInfinityRejects) {
  const Twin twin = product();
  for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
    at::Tensor wrong = twin.baseline.clone();
    wrong[13][7] = bad;
    const auto result = judge(twin, wrong);
    EXPECT_EQ(result.judgement, Judgement::kRejected);
    EXPECT_NE(result.reason.find("index [13, 7]"), std::string::npos) << result.reason;
  }
}

TEST(Compare, MatchingInfinityHidesNothing) {
  Twin twin = product();
  twin.oracle[0][0] = kInfinity;
  twin.baseline[0][0] = kInfinity;
  EXPECT_TRUE(judge(twin, twin.baseline).accepted());
  at::Tensor wrong = twin.baseline.clone();
  wrong[5][5] += 1;
  EXPECT_EQ(judge(twin, wrong).judgement, Judgement::kRejected);
  at::Tensor sign = twin.baseline.clone();
  sign[0][0] = -kInfinity;
  EXPECT_EQ(judge(twin, sign).judgement, Judgement::kRejected);
}

TEST(Compare, OracleOverflowCountsAsInfinity) {
  Twin twin = product();
  twin.oracle[0][0] = 1e39;
  twin.baseline[0][0] = kInfinity;
  EXPECT_TRUE(judge(twin, twin.baseline).accepted());
}

TEST(Compare, NanNeedsAllowance) {
  Twin twin = product();
  twin.oracle[2][3] = std::nan("");
  twin.baseline[2][3] = std::nan("");
  EXPECT_EQ(judge(twin, twin.baseline).judgement, Judgement::kInvalid);
  OutputSpec allowed = output();
  allowed.nan_allowed = true;
  EXPECT_TRUE(judge(twin, twin.baseline, allowed).accepted());
  at::Tensor repaired = twin.baseline.clone();
  repaired[2][3] = 0;
  EXPECT_EQ(judge(twin, repaired, allowed).judgement, Judgement::kRejected);  // never a wildcard
}

// A complex product: interleaved, and the same as planes.
Twin complex_product() {
  at::manual_seed(17);
  const at::Tensor a = at::randn({70, 64}, at::kComplexFloat), b = at::randn({64, 50}, at::kComplexFloat);
  return {at::matmul(a.to(at::kComplexDouble), b.to(at::kComplexDouble)), at::matmul(a, b)};
}
at::Tensor planes(const at::Tensor& z) { return at::stack({at::real(z), at::imag(z)}, 0); }

TEST(Compare, ComplexByModulus) {
  const Twin twin = complex_product(), planar{planes(twin.oracle), planes(twin.baseline)};
  const OutputSpec spec = output(Tolerance::Kind::kBound, {2e-4, 2e-4}), planar_spec = spec.of(Element::kPlanar);
  const auto same = judge(twin, twin.baseline, spec);
  EXPECT_TRUE(same.accepted()) << same.reason;
  EXPECT_EQ(same.elements, 3500);
  const auto same_planes = judge(planar, planar.baseline, planar_spec);
  EXPECT_TRUE(same_planes.accepted()) << same_planes.reason;
  EXPECT_EQ(same_planes.elements, 3500);
  EXPECT_DOUBLE_EQ(same.rmse, same_planes.rmse);
  for (const at::Tensor& wrong : {at::conj(twin.baseline).resolve_conj(), twin.baseline * c10::complex<double>(0, 1),
                                  twin.baseline * 1.001, at::zeros_like(twin.baseline)}) {
    EXPECT_EQ(judge(twin, wrong, spec).judgement, Judgement::kRejected);
    EXPECT_EQ(judge(planar, planes(wrong), planar_spec).judgement, Judgement::kRejected);
  }
  // A real part that is nearly zero may err by what the modulus allows, though not by what it allows itself.
  at::Tensor turned = twin.baseline.clone();
  const auto z = turned[3][4].item<c10::complex<float>>();
  turned[3][4].fill_(c10::complex<float>(z.real() + 1e-6f * std::abs(z), z.imag()));
  EXPECT_TRUE(judge(twin, turned, spec).accepted());
  const auto lazily = judge(twin, at::conj(at::conj(twin.baseline).resolve_conj()), spec);
  EXPECT_NE(lazily.reason.find("not carried out"), std::string::npos) << lazily.reason;
}

TEST(Compare, ComplexMasksByPart) {
  Twin twin = complex_product();
  const OutputSpec spec = output(Tolerance::Kind::kBound, {2e-4, 2e-4});
  at::Tensor wrong = twin.baseline.clone();
  at::imag(wrong)[13][7] = std::nan("");
  const auto result = judge(twin, wrong, spec);
  EXPECT_EQ(result.judgement, Judgement::kRejected);
  EXPECT_NE(result.reason.find("index [13, 7]"), std::string::npos) << result.reason;
  for (at::Tensor* one : {&twin.oracle, &twin.baseline}) at::real(*one)[13][7] = kInfinity;
  EXPECT_TRUE(judge(twin, twin.baseline, spec).accepted());
  wrong = twin.baseline.clone();
  at::real(wrong)[13][7] = 1;
  at::imag(wrong)[13][7] = kInfinity;  // in the other part
  EXPECT_EQ(judge(twin, wrong, spec).judgement, Judgement::kRejected);
}

TEST(Compare, ExactComplexIsBits) {
  const Twin twin = complex_product();
  EXPECT_TRUE(judge(twin, twin.baseline, output(Tolerance::Kind::kExact)).accepted());
  at::Tensor wrong = twin.baseline.clone();
  at::imag(wrong)[5][5].mul_(1 + 1e-7);
  wrong[6][6] = std::nextafter(1.0f, 2.0f);
  EXPECT_FALSE(judge(twin, wrong, output(Tolerance::Kind::kExact)).accepted());
}

TEST(Compare, MeasuredIsFiniteAndNotNegative) {
  const Twin twin{at::full({3}, 2.0, at::kDouble), at::full({3}, 1.0)};
  const OutputSpec spec = output(Tolerance::Kind::kMeasured);
  EXPECT_TRUE(judge(twin, at::full({3}, 70.0), spec).accepted());
  EXPECT_TRUE(judge(twin, at::zeros({5}), spec).accepted());
  for (const double bad : {-1.0, std::nan(""), kInfinity}) {
    const auto result = judge(twin, at::tensor({1.0f, static_cast<float>(bad), 1.0f}), spec);
    EXPECT_EQ(result.judgement, Judgement::kRejected);
    EXPECT_NE(result.reason.find("element 1"), std::string::npos) << result.reason;
  }
}

TEST(Compare, LowerPrecisionRejects) {
  const Twin twin = product();
  EXPECT_FALSE(judge(twin, twin.baseline.to(at::kBFloat16).to(at::kFloat)).accepted());
  EXPECT_FALSE(judge(twin, twin.baseline.to(at::kHalf).to(at::kFloat)).accepted());
  // A uniform 1e-6 relative error is within the element-wise table but three times the baseline's whole error.
  const auto scaled = judge(twin, twin.baseline * (1 + 1e-6));
  EXPECT_FALSE(scaled.accepted());
  EXPECT_NE(scaled.reason.find("RMSE"), std::string::npos) << scaled.reason;
}

TEST(Compare, SmallOutputsDoNotPassAsZeros) {
  Twin twin = product();
  twin.oracle *= 1e-8;
  twin.baseline *= 1e-8;
  EXPECT_TRUE(judge(twin, twin.baseline).accepted());
  EXPECT_FALSE(judge(twin, at::zeros_like(twin.baseline)).accepted());
}

TEST(Compare, PoorBaselineIsInvalidUnlessNegligible) {
  Twin twin = product();
  twin.baseline = twin.baseline * 1.1;
  EXPECT_EQ(judge(twin, twin.baseline).judgement, Judgement::kInvalid);
  const Twin cancelled{at::zeros({40}, at::kDouble), at::full({40}, 1e-9)};  // mathematically zero
  const auto result = judge(cancelled, at::full({40}, -3e-9));
  EXPECT_TRUE(result.accepted()) << result.reason;
  EXPECT_TRUE(result.negligible);
  EXPECT_FALSE(judge(cancelled, at::full({40}, 1e-5)).accepted());
  EXPECT_FALSE(judge(cancelled, at::full({40}, std::nan(""))).accepted());
}

TEST(Compare, AGradientThatIsFp64sOwnRoundingIsNothing) {
  const OutputSpec spec = output(Tolerance::Kind::kGradient, {1e-4, 0});
  const Twin vanished{at::full({40}, 4.5e-29, at::kDouble), at::zeros({40})};
  EXPECT_TRUE(judge(vanished, at::zeros({40}), spec).accepted());
  EXPECT_TRUE(judge(vanished, at::full({40}, -3e-28), spec).accepted());
  EXPECT_FALSE(judge(vanished, at::full({40}, 1e-20), spec).accepted());
  const Twin small{at::full({40}, 4.5e-20, at::kDouble), at::zeros({40})};
  EXPECT_EQ(judge(small, at::zeros({40}), spec).judgement, Judgement::kInvalid);
}

TEST(Compare, SpecificationBoundOfAModeThatRounds) {
  // In bf16 mode the oracle rules are wide where nobody looked at the roundings; the specification's bound is what
  // catches a twin that rounds other operands, or none.
  at::manual_seed(3);
  const at::Tensor a = at::randn({64, 256}), b = at::randn({256, 64});
  const at::Tensor rounded_a = a.to(at::kBFloat16), rounded_b = b.to(at::kBFloat16);
  const Twin twin{at::matmul(rounded_a.to(at::kDouble), rounded_b.to(at::kDouble)),
                  at::matmul(rounded_a.to(at::kFloat), rounded_b.to(at::kFloat))};
  OutputSpec spec = output();
  spec.tolerance.bf16 = {2e-5, 2e-5};
  const auto exact = judge(twin, twin.oracle.to(at::kFloat), spec, Dtype::kBf16);
  EXPECT_TRUE(exact.accepted()) << exact.reason;
  const auto unrounded =
      judge(twin, at::matmul(a.to(at::kDouble), b.to(at::kDouble)).to(at::kFloat), spec, Dtype::kBf16);
  EXPECT_FALSE(unrounded.accepted());
}

TEST(Compare, OfASolverTheClassSaysHowFar) {
  Twin twin = product();
  twin.baseline = twin.oracle.to(at::kFloat);  // happens to be as close as can be
  // Rows of 50 elements.
  const double share = 1 / std::sqrt(50.0);
  const at::Tensor within = (twin.oracle + 4e-4 * share).to(at::kFloat),
                   beyond = (twin.oracle + 6e-4 * share).to(at::kFloat);
  OutputSpec spec = output(Tolerance::Kind::kBound, {0, 5e-4});
  EXPECT_FALSE(judge(twin, within, spec).accepted());
  spec.tolerance.iterative = true;
  EXPECT_TRUE(judge(twin, within, spec).accepted()) << judge(twin, within, spec).reason;
  EXPECT_FALSE(judge(twin, beyond, spec).accepted());
}

TEST(Compare, ExactIsBitwise) {
  const at::Tensor counts = at::arange(100);
  const Twin twin{counts, counts};
  EXPECT_TRUE(judge(twin, counts.clone()).accepted());  // integers are exact whatever the declared class
  at::Tensor wrong = counts.clone();
  wrong[99] = 98;
  EXPECT_NE(judge(twin, wrong).reason.find("1 of 100 elements"), std::string::npos);
  const OutputSpec exact = output(Tolerance::Kind::kExact);
  const at::Tensor values = at::randn({33});
  const Twin moved{values.to(at::kDouble), values};
  EXPECT_TRUE(judge(moved, values.clone(), exact).accepted());
  EXPECT_FALSE(judge(moved, values * (1 + 1.2e-7), exact).accepted());
  const Twin zero{at::zeros({4}, at::kDouble), at::zeros({4})};
  EXPECT_FALSE(judge(zero, -at::zeros({4}), exact).accepted());  // the sign bit is a bit
  const at::Tensor flags = values > 0;
  EXPECT_FALSE(judge({flags, flags}, flags.logical_not(), exact).accepted());
}

TEST(Compare, GradientClass) {
  Twin twin = product(400, 128);
  OutputSpec spec = output(Tolerance::Kind::kGradient, {1e-4, 0});
  EXPECT_TRUE(judge(twin, twin.oracle.to(at::kFloat), spec).accepted());
  EXPECT_FALSE(judge(twin, twin.baseline * 1.001, spec).accepted());
  EXPECT_FALSE(judge(twin, -twin.baseline, spec).accepted());
}

// Sums that nearly cancel: the baseline is off by two thousandths, where the class allows a tenth of one.
TEST(Compare, AGradientWhoseBaselineMissesTheClassIsHeldToThatBaseline) {
  const OutputSpec spec = output(Tolerance::Kind::kGradient, {1e-4, 0});
  const at::Tensor oracle = at::full({8}, 1e-6, at::kDouble);
  const Twin cancelling{oracle, (oracle * 1.002).to(at::kFloat)}, sharp{oracle, (oracle * 1.00005).to(at::kFloat)};
  const at::Tensor near = (oracle * 0.99).to(at::kFloat), beyond = (oracle * 0.979).to(at::kFloat);
  EXPECT_TRUE(judge(cancelling, near, spec).accepted()) << judge(cancelling, near, spec).reason;
  EXPECT_TRUE(judge(cancelling, oracle.to(at::kFloat), spec).accepted());
  EXPECT_FALSE(judge(cancelling, beyond, spec).accepted());
  EXPECT_FALSE(judge(cancelling, -oracle.to(at::kFloat), spec).accepted());
  EXPECT_FALSE(judge(sharp, (oracle * 0.9995).to(at::kFloat), spec).accepted());
}

TEST(Compare, EmptyAndScalar) {
  const Twin empty{at::empty({0, 4}, at::kDouble), at::empty({0, 4})};
  EXPECT_TRUE(judge(empty, at::empty({0, 4})).accepted());
  EXPECT_FALSE(judge(empty, at::empty({4, 0})).accepted());
  const Twin scalar{at::scalar_tensor(2.0, at::kDouble), at::scalar_tensor(2.0)};
  EXPECT_TRUE(judge(scalar, at::scalar_tensor(2.00001)).accepted());
  EXPECT_FALSE(judge(scalar, at::scalar_tensor(2.001)).accepted());
}

TEST(Compare, ShapeAndKindOfTheOracle) {
  const Twin twin = product();
  EXPECT_EQ(compare(output(), twin.oracle.t(), twin.baseline, twin.baseline, Dtype::kFp32).judgement,
            Judgement::kInvalid);
  const at::Tensor complex = at::zeros({3}, at::kComplexFloat);
  const at::Tensor real = at::zeros({3});
  EXPECT_EQ(compare(output(), complex, real, real, Dtype::kFp32).judgement, Judgement::kInvalid);
  EXPECT_THROW(compare(output().of(Element::kPlanar), real, real, real, Dtype::kFp32), Error) << "three planes";
}

TEST(Compare, TenMillionElementsTakeUnderASecond) {
  const at::Tensor baseline = at::rand({10'000'000});
  const Twin twin{baseline.to(at::kDouble), baseline};
  const std::clock_t start = std::clock();  // processor time: other work on the machine does not count
  EXPECT_TRUE(judge(twin, baseline).accepted());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("compared 10 million elements in %.3f s\n", seconds);
  EXPECT_LT(seconds, 3);
}

}  // namespace
}  // namespace twinbench
