// Verdicts that are known beforehand are counted as what they are, and the bounds are the published ones.
#include "harness/timing/qualification.h"

#include <gtest/gtest.h>

#include <cmath>

namespace twinbench {
namespace {

PairedResult verdict(TimeVerdict verdict, double noise = 0.001) {
  PairedResult result;
  result.verdict = verdict;
  for (int i = -6; i <= 6; ++i) result.log_ratios.push_back(noise * i / 3.5);
  return result;
}

TEST(Qualification, BoundsAreThoseOfTheBinomial) {
  EXPECT_NEAR(rate_at_most(0, 600, 0.95), 1 - std::pow(0.05, 1.0 / 600), 1e-9);
  EXPECT_NEAR(rate_at_most(0, 300, 0.95), 1 - std::pow(0.05, 1.0 / 300), 1e-9);
  EXPECT_NEAR(rate_at_most(1, 10, 0.95), 0.394163, 1e-5);  // Clopper and Pearson's tables
  EXPECT_EQ(rate_at_most(0, 0, 0.95), 1);
}

TEST(Qualification, AFalseVerdictAndAMissAreSeen) {
  Qualification q;
  q.add_null(verdict(TimeVerdict::kSame));
  q.add_null(verdict(TimeVerdict::kInconclusive));
  q.add_planted(verdict(TimeVerdict::kSlower));
  EXPECT_TRUE(q.sound());
  Qualification alarmed = q, missed = q;
  alarmed.add_null(verdict(TimeVerdict::kFaster));
  EXPECT_FALSE(alarmed.sound());
  missed.add_planted(verdict(TimeVerdict::kInconclusive));
  EXPECT_FALSE(missed.sound());
  EXPECT_EQ(missed.misses, 1u);
}

TEST(Qualification, ANoisyComparisonPromisesNothingUnlessItIsDecidedWrongly) {
  Qualification q;
  q.add_planted(verdict(TimeVerdict::kInconclusive, 0.1));
  EXPECT_TRUE(q.sound());
  EXPECT_EQ(q.planted, 0u);
  EXPECT_EQ(q.planted_too_noisy, 1u);
  q.add_planted(verdict(TimeVerdict::kSame, 0.1));
  EXPECT_FALSE(q.sound());
}

// Runs cost the same each; reading costs nothing.
class SteppingClock : public Clock {
 public:
  std::int64_t now() override { return now_ += 100; }
  std::int64_t now_ = 0;
};

TEST(Qualification, APlantedSideTakesSoMuchLonger) {
  SteppingClock clock;
  Side side;
  side.run = [&clock] { clock.now_ += 1'000'000; };
  const Side planted = planted_side(side, clock);
  for (const std::int64_t iterations : {1, 7, 20, 1000})
    EXPECT_NEAR(planted.sample_seconds(iterations), (1 + kPlantedShare) * 1e-3 * static_cast<double>(iterations),
                2e-6 * static_cast<double>(iterations))
        << iterations;
}

TEST(Qualification, SurvivesTheRecord) {
  Qualification q;
  q.add_null(verdict(TimeVerdict::kSame));
  q.add_planted(verdict(TimeVerdict::kSlower));
  EXPECT_EQ(to_json(qualification_from(to_json(q))), to_json(q));
}

}  // namespace
}  // namespace twinbench
