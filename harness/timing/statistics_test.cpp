// The estimators against literals computed with SciPy 1.17.1 / NumPy (the call is named beside each).
#include "harness/timing/statistics.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "src/common/error.h"

namespace twinbench {
namespace {

// round(0.03 sin(1.7 i) + 0.01 (i mod 5), 6) for i = 1..20.
const std::vector<double> kValues = {0.03975,  0.012334, 0.002226,  0.054823, 0.023955, -0.010996, 0.001456,
                                     0.055775, 0.051902, -0.028842, 0.00553,  0.049994, 0.026741,  0.010846,
                                     0.010772, 0.036378, 0.002431,  0.008149, 0.0632,   0.015872};

TEST(Statistics, MedianAndQuartilesMatchNumpyPercentile) {
  EXPECT_NEAR(median(kValues), 0.014103, 1e-15);
  const Quartiles even = quartiles(kValues);
  EXPECT_NEAR(even.first, 0.00475525, 1e-15);
  EXPECT_NEAR(even.median, 0.014103, 1e-15);
  EXPECT_NEAR(even.third, 0.042311, 1e-15);
  const std::vector<double> first_seven(kValues.begin(), kValues.begin() + 7);
  const Quartiles odd = quartiles(first_seven);
  EXPECT_NEAR(median(first_seven), 0.012334, 1e-15);
  EXPECT_NEAR(odd.first, 0.001841, 1e-15);
  EXPECT_NEAR(odd.third, 0.0318525, 1e-15);
}

TEST(Statistics, OneValueIsItsOwnMedianAndQuartiles) {
  const std::vector<double> one = {4.5};
  EXPECT_EQ(median(one), 4.5);
  EXPECT_EQ(quartiles(one).first, 4.5);
  EXPECT_EQ(quartiles(one).third, 4.5);
  EXPECT_EQ(hodges_lehmann(one), 4.5);
}

TEST(Statistics, RobustDeviationIsInterquartileRangeOverNormal) {
  EXPECT_NEAR(robust_deviation(kValues), 0.027840119133820878, 1e-15);  // scipy.stats.iqr(x) / (2 norm.ppf(0.75))
}

TEST(Statistics, HodgesLehmannIsMedianOfPairwiseMeans) {
  EXPECT_NEAR(hodges_lehmann(kValues), 0.0211985, 1e-15);  // numpy.median of the 210 means with i <= j
}

TEST(Statistics, LagOneAutocorrelationMatchesItsDefinition) {
  EXPECT_NEAR(*lag_one_autocorrelation(kValues), -0.13307125486504448, 1e-14);  // sum d_i d_(i-1) / sum d_i^2
  EXPECT_FALSE(lag_one_autocorrelation(std::vector<double>{1.0, 2.0}).has_value());
  EXPECT_FALSE(lag_one_autocorrelation(std::vector<double>(50, 0.1)).has_value());
}

TEST(Statistics, SignTestRankMatchesScipyBinomialCdf) {
  // The largest r with 2 scipy.stats.binom.cdf(r - 1, n, 0.5) <= 1 - confidence.
  struct Row {
    std::size_t n, rank95, rank99;
  };
  const Row rows[] = {{5, 0, 0},     {6, 1, 0},        {7, 1, 0},       {8, 1, 1},    {12, 3, 2},
                      {20, 6, 4},    {32, 10, 9},      {48, 17, 15},    {64, 24, 22}, {96, 38, 35},
                      {128, 53, 49}, {1000, 469, 459}, {2001, 957, 943}};
  for (const Row& row : rows) {
    EXPECT_EQ(sign_test_rank(row.n, 0.95), row.rank95) << row.n;
    EXPECT_EQ(sign_test_rank(row.n, 0.99), row.rank99) << row.n;
  }
  EXPECT_EQ(sign_test_rank(0, 0.99), 0u);
  EXPECT_EQ(sign_test_minimum_count(0.95), 6u);
  EXPECT_EQ(sign_test_minimum_count(0.99), 8u);
}

TEST(Statistics, SignTestIntervalMatchesScipyQuantileTest) {
  // scipy.stats.quantile_test(x, p=0.5).confidence_interval(...).low; the upper end is the mirrored order statistic.
  const Interval at95 = *sign_test_interval(kValues, 0.95), at99 = *sign_test_interval(kValues);
  EXPECT_EQ(at95.lower, 0.00553);
  EXPECT_EQ(at95.upper, 0.03975);
  EXPECT_EQ(at99.lower, 0.002226);
  EXPECT_EQ(at99.upper, 0.051902);
}

TEST(Statistics, NoIntervalExistsForTooFewValues) {
  const std::vector<double> seven(kValues.begin(), kValues.begin() + 7), eight(kValues.begin(), kValues.begin() + 8);
  EXPECT_FALSE(sign_test_interval(seven, 0.99).has_value());
  EXPECT_TRUE(sign_test_interval(eight, 0.99).has_value());
}

TEST(Statistics, MinimumDetectableEffectMatchesScipyBetaQuantile) {
  // s norm.ppf(beta.ppf(power, m, n - m + 1)) with m = n - rank + 1.
  EXPECT_NEAR(*minimum_detectable_effect(8, 0.01), 0.02223717793997448, 1e-10);
  EXPECT_NEAR(*minimum_detectable_effect(12, 0.01), 0.01692863626080416, 1e-10);
  EXPECT_NEAR(*minimum_detectable_effect(20, 0.01), 0.013394417343981604, 1e-10);
  EXPECT_NEAR(*minimum_detectable_effect(48, 0.01), 0.007589088316040052, 1e-10);
  EXPECT_NEAR(*minimum_detectable_effect(128, 0.01), 0.004521828580832352, 1e-10);
  EXPECT_NEAR(*minimum_detectable_effect(64, 0.02, 0.95, 0.8), 0.009440519842169773, 1e-10);
  EXPECT_FALSE(minimum_detectable_effect(7, 0.01).has_value());
}

TEST(Statistics, OutliersAreCountedByTukeysFences) {
  std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9};  // quartiles 3 and 7: fences at -3 and 13, -9 and 19
  EXPECT_EQ(count_outliers(values).mild + count_outliers(values).severe, 0u);
  values.push_back(18);
  values.push_back(100);
  const OutlierCounts counts = count_outliers(values);  // quartiles 3.5 and 8.5: mild above 16, severe above 23.5
  EXPECT_EQ(counts.mild, 1u);
  EXPECT_EQ(counts.severe, 1u);
}

TEST(Statistics, RefusesNothingAndNonFiniteValues) {
  EXPECT_THROW(median(std::vector<double>{}), Error);
  EXPECT_THROW(median(std::vector<double>{1, std::numeric_limits<double>::quiet_NaN()}), Error);
  EXPECT_THROW(hodges_lehmann(std::vector<double>{std::numeric_limits<double>::infinity()}), Error);
  EXPECT_THROW(sign_test_rank(10, 1.0), Error);
  EXPECT_THROW(minimum_detectable_effect(10, -1), Error);
}

}  // namespace
}  // namespace twinbench
