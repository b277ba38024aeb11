// Accuracy of math.h over every exponent, sign and many mantissas, and its values at NaN and the infinities.
#include "kernels/common/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "kernels/common/layer_norm.h"
#include "kernels/common/short_math.h"
#include "kernels/common/sine_cosine.h"
#include "src/common/cpu_clones.h"

namespace twinbench::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct WorstError {
  double value = 0;
  float at = 0;
  long wrong_special = 0;  // NaN or infinity where the truth is not, or the reverse
};

// Walks all 2^32 bit patterns in odd steps, so every exponent sees some 65,000 mantissas of each sign. `scale(x,
// truth)` is the unit in which errors are counted.
template <class Tested, class Truth, class Scale>
WorstError worst_error(Tested tested, Truth truth, Scale scale) {
  WorstError worst;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 1025) {
    const float x = float_of_bits(static_cast<std::uint32_t>(bits));
    const float got = tested(x);
    const double wanted = truth(static_cast<double>(x));
    if (std::isnan(wanted) || std::isnan(got) || std::isinf(static_cast<float>(wanted)) || std::isinf(got)) {
      const bool agree = std::isnan(wanted) ? std::isnan(got) : static_cast<float>(wanted) == got;
      worst.wrong_special += agree ? 0 : 1;
      continue;
    }
    const double error = std::fabs(got - wanted) / scale(x, wanted);
    if (error > worst.value) worst.value = error, worst.at = x;
  }
  return worst;
}

double ulp(float, double truth) {
  const float rounded = std::fabs(static_cast<float>(truth));
  return std::ldexp(1.0, rounded < FLT_MIN ? -149 : std::ilogb(rounded) - 23);
}

#define EXPECT_WITHIN(limit, ...)                                                                      \
  do {                                                                                                 \
    const WorstError worst = worst_error(__VA_ARGS__);                                                 \
    EXPECT_LE(worst.value, limit) << "worst at x = " << worst.at;                                      \
    EXPECT_EQ(worst.wrong_special, 0);                                                                 \
    EXPECT_GT(worst.value, 0.1) << "no error at all: the comparison cannot have looked at the values"; \
  } while (false)

TEST(MathTest, ExpIsAccurate) {
  EXPECT_WITHIN(
      1.0, [](float x) { return exp(x); }, [](double x) { return std::exp(x); }, ulp);
}

TEST(MathTest, TanhIsAccurate) {
  EXPECT_WITHIN(
      1.5, [](float x) { return tanh(x); }, [](double x) { return std::tanh(x); }, ulp);
}

TEST(MathTest, SigmoidIsAccurate) {
  EXPECT_WITHIN(
      3.0, [](float x) { return sigmoid(x); },
      [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }, ulp);
}

TEST(MathTest, ErfIsAccurate) {
  EXPECT_WITHIN(
      6.0, [](float x) { return erf(x); }, [](double x) { return std::erf(x); }, ulp);
}

// The defining formula cancels in the left tail, so GELU's error is counted in half units of x's last place.
TEST(MathTest, GeluIsAccurate) {
  EXPECT_WITHIN(
      4.0, [](float x) { return gelu(x); }, [](double x) { return x * 0.5 * (1 + std::erf(x * M_SQRT1_2)); },
      [](float x, double) { return std::ldexp(std::fmax(static_cast<double>(std::fabs(x)), 0x1p-124), -24); });
}

TEST(MathTest, GeluDerivativeIsAccurate) {
  const auto truth = [](double x) {
    return 0.5 * (1 + std::erf(x * M_SQRT1_2)) + x * 0.3989422804014326779 * std::exp(-0.5 * x * x);
  };
  EXPECT_WITHIN(
      4.0, [](float x) { return gelu_derivative(x); }, truth, [](float, double) { return 0x1p-24; });
}

// The forms for kernels: GELU as close as the one above, the rough one and the gates by absolute error.
TEST(MathTest, ShortFormsAreAccurate) {
  const auto of_x = [](float x, double) {
    return std::ldexp(std::fmax(static_cast<double>(std::fabs(x)), 0x1p-124), -24);
  };
  const auto gelu_truth = [](double x) { return x * 0.5 * (1 + std::erf(x * M_SQRT1_2)); };
  EXPECT_WITHIN(
      4.0, [](float x) { return short_gelu(x); }, gelu_truth, of_x);
  EXPECT_WITHIN(
      4.0, [](float x) { return short_gelu_and_slope(x).gelu; }, gelu_truth, of_x);
  EXPECT_WITHIN(
      5.0, [](float x) { return short_gelu_and_slope(x).slope; },
      [](double x) { return 0.5 * (1 + std::erf(x * M_SQRT1_2)) + x * 0.3989422804014326779 * std::exp(-0.5 * x * x); },
      [](float, double) { return 0x1p-24; });
  EXPECT_WITHIN(
      1.0, [](float x) { return short_sigmoid(x); },
      [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
      [](float, double) { return 2e-7; });
  EXPECT_WITHIN(
      1.0, [](float x) { return short_tanh(x); }, [](double x) { return std::tanh(x); },
      [](float, double) { return 2e-7; });
  double worst = 0;
  for (float x = -40; x < 40; x += 0.0001f)
    worst = std::max(worst, std::fabs(rough_gelu(x) - gelu_truth(static_cast<double>(x))));
  EXPECT_LT(worst, 1.3e-6);
  EXPECT_GT(worst, 1e-8);
  EXPECT_TRUE(std::isnan(rough_gelu(kNan)) && std::isnan(short_gelu(kNan)) && std::isnan(short_sigmoid(kNan)) &&
              std::isnan(short_tanh(kNan)));
  EXPECT_EQ(short_gelu(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(short_gelu(-kInfinity)));  // as gelu
}

TEST(MathTest, DerivativesAgreeWithDifferences) {
  const double h = 1e-5;
  for (double x = -4; x <= 4; x += 0.173) {
    const auto slope = [&](auto f) { return (f(x + h) - f(x - h)) / (2 * h); };
    const double y_tanh = tanh(x), y_sigmoid = sigmoid(x);
    EXPECT_NEAR(tanh_derivative_from_output(y_tanh), slope([](double v) { return tanh(v); }), 1e-9);
    EXPECT_NEAR(sigmoid_derivative_from_output(y_sigmoid), slope([](double v) { return sigmoid(v); }), 1e-9);
    EXPECT_NEAR(erf_derivative(x), slope([](double v) { return erf(v); }), 1e-9);
    EXPECT_NEAR(gelu_derivative(x), slope([](double v) { return gelu(v); }), 1e-9);
    EXPECT_NEAR(gelu_derivative(static_cast<float>(x)), gelu_derivative(x), 1e-6);
    EXPECT_NEAR(erf_derivative(static_cast<float>(x)), erf_derivative(x), 1e-6);
  }
}

TEST(MathTest, SpecialValues) {
  EXPECT_TRUE(std::isnan(exp(kNan)) && std::isnan(tanh(kNan)) && std::isnan(sigmoid(kNan)) && std::isnan(erf(kNan)) &&
              std::isnan(gelu(kNan)) && std::isnan(gelu_derivative(kNan)));
  EXPECT_EQ(exp(-kInfinity), 0.0f);
  EXPECT_EQ(exp(kInfinity), kInfinity);
  EXPECT_EQ(exp(0.0f), 1.0f);
  EXPECT_EQ(tanh(kInfinity), 1.0f);
  EXPECT_EQ(tanh(-kInfinity), -1.0f);
  EXPECT_EQ(sigmoid(kInfinity), 1.0f);
  EXPECT_EQ(sigmoid(-kInfinity), 0.0f);
  EXPECT_EQ(erf(-kInfinity), -1.0f);
  EXPECT_EQ(gelu(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(gelu(-kInfinity)));  // as ATen's formula does
  EXPECT_EQ(gelu(-10.0f), -0.0f);
  EXPECT_TRUE(std::signbit(tanh(-0.0f)) && std::signbit(erf(-0.0f)));
}

TEST(MathTest, Guard) {
  EXPECT_EQ(guard(kNan, 10.0f), 0.0f);
  EXPECT_EQ(guard(kInfinity, 10.0f), 10.0f);
  EXPECT_EQ(guard(-kInfinity, 10.0f), -10.0f);
  EXPECT_EQ(guard(3.25f, 10.0f), 3.25f);
  EXPECT_EQ(guard(-10.5, 10.0), -10.0);
  EXPECT_EQ(guard_derivative(10.0f, 10.0f), 1.0f);
  EXPECT_EQ(guard_derivative(10.5f, 10.0f), 0.0f);
  EXPECT_EQ(guard_derivative(kNan, 10.0f), 0.0f);
  EXPECT_EQ(guard_derivative(-kInfinity, 10.0f), 0.0f);
}

TEST(MathTest, Bfloat16RoundsToNearestEven) {
  EXPECT_EQ(round_to_bf16(1.0f), 1.0f);
  EXPECT_EQ(round_to_bf16(1.0f + 0x1p-8f), 1.0f);                       // tie, down to even
  EXPECT_EQ(round_to_bf16(1.0f + 0x1p-7f + 0x1p-8f), 1.0f + 0x1p-6f);   // tie, up to even
  EXPECT_EQ(round_to_bf16(1.0f + 0x1p-8f + 0x1p-20f), 1.0f + 0x1p-7f);  // above the tie
  EXPECT_EQ(round_to_bf16(FLT_MAX), kInfinity);
  EXPECT_EQ(round_to_bf16(-kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(round_to_bf16(kNan)));
  EXPECT_TRUE(std::isnan(round_to_bf16(float_of_bits(0x7f800001u))));  // payload in the dropped bits only
  EXPECT_EQ(float_of_bf16_bits(bf16_bits(-3.14159f)), round_to_bf16(-3.14159f));
}

TEST(MathTest, MomentsMergeLikeOneSet) {
  Moments<double> whole, left, right;
  for (int i = 0; i < 37; ++i) {
    const Moments<double> one{1, 1e3 + std::sin(i), 0};
    whole = merge(whole, one);
    (i < 11 ? left : right) = merge(i < 11 ? left : right, one);
  }
  const Moments<double> merged = merge(left, right);
  EXPECT_EQ(merged.count, 37);
  EXPECT_NEAR(merged.mean, whole.mean, 1e-11);
  EXPECT_NEAR(merged.variance(), whole.variance(), 1e-11);
  EXPECT_EQ(merge(Moments<double>{}, Moments<double>{}).count, 0);
}

// Both forms: without a branch up to moderate phases, and any.
TEST(MathTest, SineAndCosine) {
  double worst = 0, worst_of_any = 0;
  for (std::int64_t i = -2'000'000; i <= 2'000'000; ++i) {
    const float x = 0.00409f * static_cast<float>(i);  // to 8,180
    const auto got = moderate_sine_cosine(x);
    worst = std::max({worst, std::abs(got.sine - std::sin(double{x})), std::abs(got.cosine - std::cos(double{x}))});
  }
  EXPECT_LT(worst, 1e-7);
  for (float x = 1e-30f; x < 1e30f; x *= 1.37f)
    for (const float phase : {x, -x}) {
      const auto got = sine_cosine(phase);
      worst_of_any = std::max(
          {worst_of_any, std::abs(got.sine - std::sin(double{phase})), std::abs(got.cosine - std::cos(double{phase}))});
    }
  EXPECT_LT(worst_of_any, 2e-7);
  EXPECT_EQ(moderate_sine_cosine(0.0f).sine, 0.0f);
  EXPECT_EQ(moderate_sine_cosine(0.0f).cosine, 1.0f);
  EXPECT_TRUE(std::isnan(sine_cosine(kNan).sine) && std::isnan(moderate_sine_cosine(kNan).cosine));
}

TWINBENCH_CPU_CLONES void gelu_loop(const float* __restrict x, float* __restrict y, int n) {
  for (int i = 0; i < n; ++i) y[i] = gelu(x[i]);
}

// The instruction set picked at run time must not change a bit, nor may the vector loop differ from its tail.
TEST(MathTest, ClonedLoopEqualsScalarCalls) {
  float x[1003], y[1003];
  for (int i = 0; i < 1003; ++i) x[i] = -7.0f + 0.014f * static_cast<float>(i);
  gelu_loop(x, y, 1003);
  for (int i = 0; i < 1003; ++i) EXPECT_EQ(bits_of(y[i]), bits_of(gelu(x[i]))) << i;
}

}  // namespace
}  // namespace twinbench::kernels
