// Sine and cosine against the standard library's in fp64, over their whole range.
#include "kernels/common/trigonometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace twinbench::kernels {
namespace {

double worst_error(double low, double high) {
  double worst = 0;
  constexpr int kCount = 200000;
  for (int i = 0; i <= kCount; ++i) {
    const auto angle = static_cast<float>(low + (high - low) * i / kCount);
    const SineCosine<float> got = sine_cosine(angle);
    worst =
        std::max({worst, std::abs(got.sine - std::sin(double{angle})), std::abs(got.cosine - std::cos(double{angle}))});
  }
  return worst;
}

TEST(Trigonometry, IsExactToRounding) {
  EXPECT_LT(worst_error(-4, 4), 1e-7);
  EXPECT_LT(worst_error(-100, 100), 1e-7);
  EXPECT_LT(worst_error(-2048, 2048), 1.5e-7);
}

TEST(Trigonometry, SmallAnglesKeepTheirDigits) {
  for (const float angle : {1e-30f, -3e-12f, 1e-5f}) {
    EXPECT_FLOAT_EQ(sine_cosine(angle).sine, angle);
    EXPECT_EQ(sine_cosine(angle).cosine, 1.0f);
  }
}

TEST(Trigonometry, NanStaysNan) {
  const SineCosine<float> got = sine_cosine(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(got.sine));
  EXPECT_TRUE(std::isnan(got.cosine));
}

}  // namespace
}  // namespace twinbench::kernels
