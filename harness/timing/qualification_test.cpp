// Verdicts that are known beforehand are counted as what they are, and the bounds are the published ones.
#include "harness/timing/qualification.h"

#include <gtest/gtest.h>

#include <cmath>

namespace twinbench {
namespace {

PairedResult verdict(TimeVerdict verdict, double noise = 0.001) {
  PairedResult result;
  result.verdict = verdict;
  result.interval = Interval{1 - noise, 1 + noise};
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

TEST(Qualification, TooFewPairsForAnIntervalPromiseNothing) {
  Qualification q;
  PairedResult few = verdict(TimeVerdict::kInconclusive);
  few.interval.reset();
  q.add_planted(few);
  EXPECT_EQ(q.planted, 0u);
  EXPECT_EQ(q.planted_too_noisy, 1u);
  EXPECT_TRUE(q.sound());
  few.verdict = TimeVerdict::kSame;
  q.add_planted(few);
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

TEST(Qualification, PartsAddUpToWhatIsWanted) {
  const Qualification part = {200, 0, 3, 100, 0, 7, 0};
  EXPECT_EQ(part.lacks(), "400 of 600 comparisons with itself and 200 of 300 planted ones");
  Qualification whole;
  for (int run = 0; run < 3; ++run) whole.add(part);
  EXPECT_EQ(whole.lacks(), "");
  EXPECT_TRUE(whole.sound());
  EXPECT_LE(to_json(whole)["false_rate_at_most"].get<double>(), 0.005);
  EXPECT_GE(to_json(whole)["power_at_least"].get<double>(), 0.99);
  whole.add({1, 1, 0, 0, 0, 0, 0});
  EXPECT_FALSE(whole.sound()) << "one part's false verdict is the whole's";
}

TEST(Qualification, SurvivesTheRecord) {
  Qualification q;
  q.add_null(verdict(TimeVerdict::kSame));
  q.add_planted(verdict(TimeVerdict::kSlower));
  EXPECT_EQ(to_json(qualification_from(to_json(q))), to_json(q));
}

}  // namespace
}  // namespace twinbench
