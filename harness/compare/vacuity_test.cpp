// The vacuity guard: strong cases hold, weak ones are named, degenerate outputs check nothing.
#include "harness/compare/vacuity.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace twinbench {
namespace {

OutputSpec output(Tolerance::Kind kind = Tolerance::Kind::kBound) {
  OutputSpec spec;
  spec.name = "y";
  spec.tolerance.kind = kind;
  return spec;
}

TEST(Vacuity, AllFiveWrongAnswersAreRejected) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({40, 30}), y = at::tanh(x);
  const NamedTensors inputs{{"x", x}};
  const Vacuity guard = check_vacuity(output(), at::tanh(x.to(at::kDouble)), y, inputs, Dtype::kFp32);
  EXPECT_TRUE(guard.holds()) << guard.reason;
  EXPECT_EQ(guard.checked, 5);
  EXPECT_EQ(guard.rejected, 5);
}

TEST(Vacuity, Bf16ModeAndGradientClass) {
  at::manual_seed(2);
  const at::Tensor a = at::randn({64, 64}), b = at::randn({64, 64});
  const at::Tensor y = at::matmul(a.to(at::kBFloat16).to(at::kFloat), b.to(at::kBFloat16).to(at::kFloat));
  for (const auto kind : {Tolerance::Kind::kBound, Tolerance::Kind::kGradient}) {
    const Vacuity guard =
        check_vacuity(output(kind), at::matmul(a.to(at::kDouble), b.to(at::kDouble)), y, {{"a", a}}, Dtype::kBf16);
    EXPECT_TRUE(guard.holds()) << guard.reason;
    EXPECT_EQ(guard.checked, 5);
  }
}

TEST(Vacuity, AWeakComparisonIsNamed) {
  at::manual_seed(3);
  const at::Tensor oracle = at::randn({50, 20}, at::kDouble);
  const at::Tensor noisy =
      (oracle + 0.04 * at::randn({50, 20}, at::kDouble)).to(at::kFloat);  // 4 % error: just not poor
  OutputSpec wide = output();
  wide.tolerance.fp32 = {1, 1};
  const Vacuity guard = check_vacuity(wide, oracle, noisy, {}, Dtype::kFp32);
  EXPECT_FALSE(guard.holds());
  EXPECT_NE(guard.reason.find("one element off"), std::string::npos) << guard.reason;
  EXPECT_LT(guard.rejected, guard.checked);
}

TEST(Vacuity, InBf16ASettledElementIsPlantedAsInFp32) {
  at::manual_seed(5);
  const at::Tensor oracle = at::randn({40, 30}, at::kDouble), noise = at::randn({40, 30}, at::kDouble);
  at::Tensor open = at::zeros({40, 30}, at::kBool);
  open[30][7] = true;
  OutputSpec spec = output();
  spec.tolerance.fp32 = {2e-5, 5e-6};
  spec.tolerance.bf16 = {2e-2, 5e-3};
  const Vacuity guard = check_vacuity(spec, oracle, oracle.to(at::kFloat), {}, Dtype::kBf16, open);
  EXPECT_TRUE(guard.holds()) << guard.reason;
  EXPECT_EQ(guard.checked, 5);  // of the single elements one of either kind
  // A comparison that allows 8 % is too weak for fp32's 5 %, though not for 25 %.
  spec.tolerance.fp32 = spec.tolerance.bf16 = {1, 1};
  const Vacuity weak = check_vacuity(spec, oracle, (oracle + 0.01 * noise).to(at::kFloat), {}, Dtype::kBf16, open);
  EXPECT_FALSE(weak.holds());
  EXPECT_NE(weak.reason.find("one element off"), std::string::npos) << weak.reason;
}

TEST(Vacuity, ComplexAnswersAreNotTheirConjugates) {
  at::manual_seed(4);
  const at::Tensor z = at::randn({40, 30}, at::kComplexFloat), y = z * z;
  const at::Tensor right = z.to(at::kComplexDouble).square();
  const Vacuity guard = check_vacuity(output(), right, y, {{"z", z}}, Dtype::kFp32);
  EXPECT_TRUE(guard.holds()) << guard.reason;
  EXPECT_EQ(guard.checked, 7);
  const auto planes = [](const at::Tensor& one) { return at::stack({at::real(one), at::imag(one)}, 0); };
  const Vacuity planar =
      check_vacuity(output().of(Element::kPlanar), planes(right), planes(y), {{"z", planes(z)}}, Dtype::kFp32);
  EXPECT_TRUE(planar.holds()) << planar.reason;
  EXPECT_EQ(planar.checked, 7);
  OutputSpec wide = output();  // so wide that the conjugate of nearly real numbers passes
  wide.tolerance.fp32 = {2, 2};
  const at::Tensor real = at::complex(at::real(right), 1e-5 * at::imag(right));
  const at::Tensor noisy = (real + 0.01 * at::randn_like(real)).to(at::kComplexFloat);
  const Vacuity weak = check_vacuity(wide, real, noisy, {}, Dtype::kFp32);
  EXPECT_FALSE(weak.holds());
  EXPECT_EQ(check_vacuity(output(Tolerance::Kind::kMeasured), y, y, {}, Dtype::kFp32).checked, 0);
}

TEST(Vacuity, ConstantAndEmptyOutputsCheckLittleOrNothing) {
  const at::Tensor zeros = at::zeros({10, 3});
  const Vacuity constant = check_vacuity(output(), zeros.to(at::kDouble), zeros, {}, Dtype::kFp32);
  EXPECT_TRUE(constant.holds()) << constant.reason;
  EXPECT_EQ(constant.checked, 1);  // only one element off differs
  const at::Tensor none = at::empty({0});
  EXPECT_EQ(check_vacuity(output(), none.to(at::kDouble), none, {}, Dtype::kFp32).checked, 0);
}

TEST(Vacuity, IntegersAndBooleans) {
  const at::Tensor ids = at::arange(30), flags = ids % 3 == 0;
  const Vacuity integers = check_vacuity(output(Tolerance::Kind::kExact), ids, ids, {}, Dtype::kFp32);
  EXPECT_TRUE(integers.holds()) << integers.reason;
  EXPECT_EQ(integers.checked, 4);
  const Vacuity booleans = check_vacuity(output(Tolerance::Kind::kExact), flags, flags, {}, Dtype::kFp32);
  EXPECT_TRUE(booleans.holds()) << booleans.reason;
  EXPECT_EQ(booleans.checked, 3);
}

TEST(Vacuity, IdentityComponentsAreNotBlamedForCopyingTheirInput) {
  const at::Tensor x = at::randn({8, 4});
  EXPECT_EQ(check_vacuity(output(Tolerance::Kind::kExact), x.to(at::kDouble), x, {{"x", x}}, Dtype::kFp32).checked, 4);
}

TEST(Vacuity, NonFiniteElementsDoNotDoTheWork) {
  at::Tensor y = at::randn({20, 5});
  y[0][0] = std::numeric_limits<float>::infinity();
  const Vacuity guard = check_vacuity(output(), y.to(at::kDouble), y, {}, Dtype::kFp32);
  EXPECT_TRUE(guard.holds()) << guard.reason;
  EXPECT_EQ(guard.checked, 4);
}

TEST(Vacuity, APoorBaselineFailsTheGuard) {
  const at::Tensor y = at::randn({20, 5});
  EXPECT_FALSE(check_vacuity(output(), y.to(at::kDouble) * 2, y, {}, Dtype::kFp32).holds());
}

}  // namespace
}  // namespace twinbench
