// Paired comparisons on a simulated machine: what is the same, what differs, how they stop, and what they report.
#include "harness/timing/paired.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/timing/simulated_machine.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::uint64_t kSeed = 20240611;
const Noise kTypical = {
    .deviation = 0.01, .wander = 0.0008, .step = 0.08, .step_chance = 0.005, .spike_chance = 0.03, .spike_scale = 0.05};

PairedOptions options() {
  PairedOptions options;
  options.clock_quality = ClockQuality{1e-9, 25e-9};
  return options;
}

PairedResult compare(const Noise& noise, double a_s, double b_s, PairedOptions chosen = options(),
                     std::uint64_t seed = kSeed) {
  SimulatedMachine machine(seed, noise);
  return measure_pair(machine.side("a", a_s), machine.side("b", b_s), chosen, machine);
}

TEST(Paired, AgainstItselfIsTheSame) {
  const PairedResult result = compare(kTypical, 1e-4, 1e-4);
  EXPECT_EQ(result.verdict, TimeVerdict::kSame) << result.explanation() << " seed " << kSeed;
  EXPECT_TRUE(result.interval->contains(1));
}

TEST(Paired, TenPercentIsSeenBothWays) {
  const PairedResult slower = compare(kTypical, 1e-4, 1.1e-4), faster = compare(kTypical, 1.1e-4, 1e-4);
  EXPECT_EQ(slower.verdict, TimeVerdict::kSlower) << slower.explanation() << " seed " << kSeed;
  EXPECT_TRUE(slower.interval->contains(1 / 1.1)) << slower.interval->lower << " " << slower.interval->upper;
  EXPECT_EQ(faster.verdict, TimeVerdict::kFaster) << faster.explanation() << " seed " << kSeed;
  EXPECT_TRUE(faster.interval->contains(1.1)) << faster.interval->lower << " " << faster.interval->upper;
}

TEST(Paired, LinearDriftCancels) {
  // Half a per cent a sample: A measured first and B after it would differ by far more than the threshold.
  const PairedResult result = compare({.deviation = 0.001, .drift = 0.005}, 1e-4, 1e-4);
  EXPECT_EQ(result.verdict, TimeVerdict::kSame) << result.explanation() << " seed " << kSeed;
  EXPECT_NEAR(result.ratio, 1, 0.002);
  EXPECT_GT(result.samples_a.back() / result.samples_a.front(), 1.05) << "the machine did drift";
}

TEST(Paired, SpikesDoNotMoveTheMedianAndAreKept) {
  const PairedResult result = compare({.deviation = 0.003, .spike_chance = 0.15, .spike_scale = 0.5}, 1e-4, 1e-4);
  EXPECT_EQ(result.verdict, TimeVerdict::kSame) << result.explanation() << " seed " << kSeed;
  const OutlierCounts outliers = count_outliers(result.samples_a);
  EXPECT_GT(outliers.mild + outliers.severe, 0u);
  EXPECT_EQ(result.samples_a.size(), result.pairs);
}

TEST(Paired, StopsOnWidthEarlyWhereQuietAndAtTheCapWhereNoisy) {
  const PairedResult quiet = compare({.deviation = 0.001}, 1e-4, 1e-4);
  EXPECT_EQ(quiet.stopped, "width");
  EXPECT_LE(quiet.pairs, 32u);
  EXPECT_LE(std::log(quiet.interval->upper / quiet.interval->lower) / 2, kGateHalfWidth);
  const PairedResult noisy = compare({.deviation = 0.1}, 1e-4, 1e-4);
  EXPECT_EQ(noisy.stopped, "pairs");
  EXPECT_EQ(noisy.pairs, 128u);
  EXPECT_EQ(noisy.verdict, TimeVerdict::kInconclusive);
  EXPECT_NE(noisy.reason.find("threshold of 2 %"), std::string::npos) << noisy.reason;
  EXPECT_GT(*noisy.minimum_detectable, 0.02);
}

TEST(Paired, AClearDifferenceDoesNotStopSamplingEarly) {
  // Significant at once, but noisy: stopping on significance would end at 12 pairs.
  const PairedResult result = compare({.deviation = 0.05}, 3e-4, 1e-4);
  EXPECT_EQ(result.pairs, 128u);
  EXPECT_EQ(result.verdict, TimeVerdict::kFaster);
}

TEST(Paired, TheTimeBudgetEndsSamplingAndSaysSo) {
  PairedOptions chosen = options();
  chosen.time_budget_s = 1;
  const PairedResult result = compare({.deviation = 0.001}, 0.1, 0.1, chosen);
  EXPECT_EQ(result.stopped, "time");
  EXPECT_EQ(result.verdict, TimeVerdict::kInconclusive);
  EXPECT_NE(result.reason.find("needs 8"), std::string::npos) << result.reason;
  EXPECT_NE(result.reason.find("time budget"), std::string::npos) << result.reason;
  EXPECT_FALSE(result.interval.has_value());
  EXPECT_EQ(result.pairs, 2u);
}

TEST(Paired, SlowSidesMayTakeLongerUntilThereIsAnInterval) {
  PairedOptions chosen = options();
  chosen.time_budget_s = 1;
  chosen.interval_budget_s = 10;
  const PairedResult result = compare({.deviation = 0.001}, 0.1, 0.1, chosen);
  EXPECT_EQ(result.stopped, "time");
  EXPECT_TRUE(result.interval.has_value());
  EXPECT_EQ(result.pairs, 8u);
  chosen.interval_budget_s = 1.5;
  EXPECT_FALSE(compare({.deviation = 0.001}, 0.1, 0.1, chosen).interval.has_value());
}

TEST(Paired, OrderIsMirroredInEveryBlockAndComesFromTheSeed) {
  PairedOptions chosen = options();
  const PairedResult first = compare({.deviation = 0.05}, 1e-4, 1e-4, chosen);
  const PairedResult again = compare({.deviation = 0.05}, 1e-4, 1e-4, chosen);
  chosen.seed = 2;
  const PairedResult other = compare({.deviation = 0.05}, 1e-4, 1e-4, chosen);
  EXPECT_EQ(first.order, again.order);
  EXPECT_NE(first.order, other.order);
  EXPECT_EQ(first.log_ratios, again.log_ratios);
  int blocks_led_by_a = 0;
  for (std::size_t block = 0; block + 5 <= first.order.size(); block += 6) {
    const std::string order = first.order.substr(block, 5);
    EXPECT_TRUE(order == "AB BA" || order == "BA AB") << order;
    blocks_led_by_a += order == "AB BA";
  }
  EXPECT_GT(blocks_led_by_a, 16);
  EXPECT_LT(blocks_led_by_a, 48);
}

TEST(Paired, DependentPairsFallBackToBlockMedians) {
  // Every pair of a mirrored block carries the drift with the opposite sign: strong negative autocorrelation.
  const PairedResult result = compare({.deviation = 0.0005, .drift = 0.01}, 1e-4, 1e-4);
  EXPECT_GT(std::abs(*result.autocorrelation), 0.2);
  EXPECT_EQ(result.block_size, 2u);
  EXPECT_EQ(result.n, result.pairs / 2);
  EXPECT_NE(result.explanation().find("blocks of 2"), std::string::npos) << result.explanation();
}

TEST(Paired, ACoarseClockIsReported) {
  SimulatedMachine machine(kSeed, {});
  const PairedResult result = measure_pair(machine.side("a", 1e-4), machine.side("b", 1e-4), options(), machine);
  EXPECT_EQ(result.verdict, TimeVerdict::kSame);
  EXPECT_EQ(result.ties, result.pairs);
  EXPECT_NE(result.explanation().find("tie exactly"), std::string::npos);
}

TEST(Paired, ASideThatReadsNoTimeIsUnusableNotFast) {
  SimulatedMachine machine(kSeed, {});
  Side broken;
  broken.name = "broken";
  broken.sample_seconds = [](std::int64_t) { return 0.0; };
  PairedOptions chosen = options();
  chosen.sample.maximum_iterations = 1000;
  const PairedResult result = measure_pair(machine.side("a", 1e-4), broken, chosen, machine);
  EXPECT_EQ(result.verdict, TimeVerdict::kInconclusive);
  EXPECT_EQ(result.pairs, 0u);
  EXPECT_EQ(result.unusable_pairs, 128u);
  EXPECT_EQ(result.samples_b.size(), 128u);
}

TEST(Paired, ImpossibleOptionsAndSidesAreRefused) {
  PairedOptions chosen = options();
  chosen.time_budget_s = 0;
  EXPECT_THROW(compare({}, 1e-4, 1e-4, chosen), Error);
  EXPECT_THROW(measure_pair(Side{}, Side{}, options()), Error);
}

TEST(Paired, WhatASideThrowsComesThrough) {
  Side side;
  side.run = [] { throw Error(ErrorKind::kBadShape, "x", "3", "give 4"); };
  EXPECT_THROW(measure_pair(side, side, options()), Error);
}

TEST(Paired, RealTimesOnTheSteadyClock) {
  volatile double sink = 0;
  const auto work = [&sink](int count) {
    return [&sink, count] {
      for (int i = 0; i < count; ++i) sink = sink + 1.0;
    };
  };
  Side once, thrice;
  once.run = work(20000);
  thrice.run = work(60000);
  PairedOptions chosen;
  chosen.time_budget_s = 1;
  chosen.sample.minimum_sample_s = 2e-4;
  const PairedResult result = measure_pair(thrice, once, chosen);
  EXPECT_EQ(result.verdict, TimeVerdict::kFaster) << result.explanation();
  EXPECT_EQ(result.iterations_a, result.iterations_b);
}

}  // namespace
}  // namespace twinbench
