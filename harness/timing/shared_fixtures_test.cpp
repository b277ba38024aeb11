// The statistics against the fixtures that the Python package reads and writes: both must say the same to 1e-12.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "harness/timing/statistics.h"
#include "harness/timing/verdict.h"

namespace twinbench {
namespace {

constexpr char kFixtures[] = "reports/tests/interval_fixtures.json";  // written by interval_fixtures.py beside it
constexpr double kExact = 1e-12;

void expect_same(const std::optional<Interval>& interval, const nlohmann::json& expected) {
  ASSERT_EQ(interval.has_value(), !expected.is_null());
  if (!interval) return;
  EXPECT_NEAR(interval->lower, expected[0].get<double>(), kExact);
  EXPECT_NEAR(interval->upper, expected[1].get<double>(), kExact);
}

void expect_same(const std::optional<double>& value, const nlohmann::json& expected) {
  ASSERT_EQ(value.has_value(), !expected.is_null());
  if (!value) return;
  EXPECT_NEAR(*value, expected.get<double>(), kExact);
}

TEST(SharedFixtures, IntervalsAreThoseOfThePythonPackage) {
  std::ifstream file(kFixtures);
  ASSERT_TRUE(file) << kFixtures << ": run from the root of the repository";
  const nlohmann::json rows = nlohmann::json::parse(file);
  ASSERT_GE(rows.size(), 50u);
  for (const nlohmann::json& row : rows) {
    const auto values = row["values"].get<std::vector<double>>();
    SCOPED_TRACE(row["values"].dump());
    const Quartiles found = quartiles(values);
    EXPECT_NEAR(median(values), row["median"].get<double>(), kExact);
    EXPECT_NEAR(found.first, row["first_quartile"].get<double>(), kExact);
    EXPECT_NEAR(found.third, row["third_quartile"].get<double>(), kExact);
    EXPECT_NEAR(hodges_lehmann(values), row["hodges_lehmann"].get<double>(), kExact);
    EXPECT_NEAR(robust_deviation(values), row["robust_deviation"].get<double>(), kExact);
    expect_same(lag_one_autocorrelation(values), row["autocorrelation"]);
    for (const nlohmann::json& at : row["at"]) {
      const double confidence = at["confidence"];
      expect_same(sign_test_interval(values, confidence), at["sign_test"]);
      const RatioEstimate estimate = estimate_ratio(values, confidence);
      EXPECT_NEAR(estimate.log_ratio, at["estimate"]["log_ratio"].get<double>(), kExact);
      EXPECT_EQ(estimate.count, at["estimate"]["count"].get<std::size_t>());
      EXPECT_EQ(estimate.block_size, at["estimate"]["block_size"].get<std::size_t>());
      expect_same(estimate.interval, at["estimate"]["interval"]);
      expect_same(minimum_detectable_effect(values.size(), robust_deviation(values), confidence),
                  at["minimum_detectable"]);
    }
  }
}

}  // namespace
}  // namespace twinbench
