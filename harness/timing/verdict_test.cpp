// Verdicts from given log ratios: both directions, the edges of the threshold, too few values, and dependent ones.
#include "harness/timing/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "src/common/error.h"

namespace twinbench {
namespace {

RatioEstimate with_interval(double lower, double upper) {
  RatioEstimate estimate;
  estimate.log_ratio = (lower + upper) / 2;
  estimate.interval = Interval{lower, upper};
  estimate.count = 12;
  return estimate;
}

TimeVerdict verdict(double lower, double upper) { return judge(with_interval(lower, upper), 0.02, 0.99).verdict; }

TEST(Verdict, OnlyAWholeIntervalBeyondTheThresholdIsADifference) {
  EXPECT_EQ(verdict(0.03, 0.30), TimeVerdict::kFaster);
  EXPECT_EQ(verdict(-0.30, -0.03), TimeVerdict::kSlower);
  EXPECT_EQ(verdict(0.01, 0.30), TimeVerdict::kInconclusive);
  EXPECT_EQ(verdict(-0.30, -0.01), TimeVerdict::kInconclusive);
  EXPECT_EQ(verdict(-0.30, 0.30), TimeVerdict::kInconclusive);
}

TEST(Verdict, OnlyAWholeIntervalWithinTheThresholdIsTheSame) {
  const double limit = std::log1p(0.02);
  EXPECT_EQ(verdict(-0.01, 0.01), TimeVerdict::kSame);
  EXPECT_EQ(verdict(0.005, 0.015), TimeVerdict::kSame) << "a difference too small to matter";
  EXPECT_EQ(verdict(-limit, limit), TimeVerdict::kSame);
  EXPECT_EQ(verdict(-0.01, 1.01 * limit), TimeVerdict::kInconclusive);
  EXPECT_EQ(verdict(-1.01 * limit, 0.01), TimeVerdict::kInconclusive);
}

TEST(Verdict, InconclusiveAlwaysGivesItsReason) {
  const TimeJudgement wide = judge(with_interval(-0.3, 0.3), 0.02, 0.99);
  EXPECT_NE(wide.reason.find("[0.741, 1.350]"), std::string::npos) << wide.reason;
  const TimeJudgement few = judge(estimate_ratio(std::vector<double>(7, 0.5), 0.99), 0.02, 0.99);
  EXPECT_EQ(few.verdict, TimeVerdict::kInconclusive);
  EXPECT_EQ(few.reason, "7 usable pairs; an interval at 99 % needs 8");
  EXPECT_EQ(judge(estimate_ratio({}, 0.99), 0.02, 0.99).verdict, TimeVerdict::kInconclusive);
  EXPECT_THROW(judge(with_interval(0, 0), -0.1, 0.99), Error);
}

TEST(Verdict, AWanderingSequenceWidensTheInterval) {
  // One slow wave over 64 pairs: blocks of 8 still follow it, so the interval must not pretend to 64 independent
  // values.
  std::vector<double> wave, shuffled;
  for (int i = 0; i < 64; ++i) wave.push_back(0.1 * std::sin(2 * 3.14159265 * i / 64));
  for (int i = 0; i < 64; ++i) shuffled.push_back(wave[static_cast<std::size_t>(i * 29 % 64)]);
  const RatioEstimate dependent = estimate_ratio(wave, 0.99), independent = estimate_ratio(shuffled, 0.99);
  EXPECT_EQ(dependent.block_size, 8u);
  EXPECT_EQ(dependent.count, 8u);
  EXPECT_EQ(dependent.notes.size(), 2u);
  EXPECT_GT(dependent.interval->half_width(), independent.interval->half_width());
  EXPECT_TRUE(dependent.interval->contains(0));
}

TEST(Verdict, RatiosReadWithEnoughDigits) {
  EXPECT_EQ(ratio_text(std::log(2.3104)), "2.310x");
  EXPECT_EQ(ratio_text(std::log(114.04)), "114.0x");
  EXPECT_EQ(interval_text({std::log(2.28), std::log(2.34)}), "[2.280, 2.340]");
}

}  // namespace
}  // namespace twinbench
