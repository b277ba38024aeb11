// Iteration counts and warm-up: shared where possible, bounded where one side is hundreds of times slower.
#include "harness/timing/calibration.h"

#include <gtest/gtest.h>

#include "harness/timing/paired.h"
#include "harness/timing/simulated_machine.h"

namespace twinbench {
namespace {

constexpr double kOverhead = 25e-9;
constexpr std::uint64_t kSeed = 7;

TEST(Calibration, OneSharedCountLiftsTheFasterSideToTheMinimumSample) {
  SimulatedMachine machine(kSeed, {.deviation = 0.01});
  const Calibration c = calibrate(machine.side("a", 1e-5), machine.side("b", 3e-6), {}, kOverhead, machine);
  EXPECT_TRUE(c.shared);
  EXPECT_EQ(c.iterations_a, c.iterations_b);
  const double faster_sample_s = 3e-6 * static_cast<double>(c.iterations_b);
  EXPECT_GT(faster_sample_s, 2e-3 * 0.95);
  EXPECT_LT(faster_sample_s, 2e-3 * 1.6);
  EXPECT_TRUE(c.settled);
  EXPECT_TRUE(c.notes.empty());
}

TEST(Calibration, TheOverheadMultipleWinsOverAShortMinimum) {
  SimulatedMachine machine(kSeed, {});
  SampleLimits limits;
  limits.minimum_sample_s = 1e-7;
  const Calibration c = calibrate(machine.side("a", 1e-7), machine.side("b", 1e-7), limits, 1e-5, machine);
  EXPECT_GE(static_cast<double>(c.iterations_a) * 1e-7, 20 * 1e-5);
  EXPECT_FALSE(c.too_short);
}

TEST(Calibration, LongRunsTakeOneIterationEach) {
  SimulatedMachine machine(kSeed, {});
  const Calibration c = calibrate(machine.side("a", 0.05), machine.side("b", 0.02), {}, kOverhead, machine);
  EXPECT_EQ(c.iterations_a, 1);
  EXPECT_EQ(c.iterations_b, 1);
  EXPECT_TRUE(c.shared);
}

TEST(Calibration, ASideThreeHundredTimesSlowerDoesNotBlowUp) {
  SimulatedMachine machine(kSeed, {.deviation = 0.002});
  PairedOptions options;
  options.clock_quality = ClockQuality{1e-9, kOverhead};
  const PairedResult result = measure_pair(machine.side("slow", 300e-6), machine.side("fast", 1e-6), options, machine);
  EXPECT_EQ(result.verdict, TimeVerdict::kFaster);
  EXPECT_TRUE(result.interval->contains(300)) << result.interval->lower << " " << result.interval->upper;
  EXPECT_LT(machine.elapsed_s(), options.time_budget_s);
  EXPECT_LE(static_cast<double>(result.iterations_a) * 300e-6, options.sample.maximum_sample_s);
  EXPECT_NE(result.explanation().find("separate iteration counts"), std::string::npos) << result.explanation();
}

TEST(Calibration, ASingleRunBeyondTheBudgetIsNotRepeatedToCalibrate) {
  SimulatedMachine machine(kSeed, {});
  int slow_runs = 0;
  Side slow = machine.side("slow", 3.0);
  slow.run = [&slow_runs, run = slow.run] {
    ++slow_runs;
    run();
  };
  const Calibration c = calibrate(slow, machine.side("fast", 1e-3), {}, kOverhead, machine);
  EXPECT_EQ(slow_runs, 1);
  EXPECT_EQ(c.iterations_a, 1);
  EXPECT_GE(c.iterations_b, 2);
  EXPECT_FALSE(c.settled);
  EXPECT_FALSE(c.notes.empty());
}

TEST(Calibration, AnIterationCapThatLeavesTheSampleTooShortMakesItInconclusive) {
  SimulatedMachine machine(kSeed, {});
  PairedOptions options;
  options.clock_quality = ClockQuality{1e-9, 1e-6};
  options.sample.maximum_iterations = 4;
  const PairedResult result = measure_pair(machine.side("a", 1e-7), machine.side("b", 1e-7), options, machine);
  EXPECT_EQ(result.verdict, TimeVerdict::kInconclusive);
  EXPECT_NE(result.reason.find("too short"), std::string::npos) << result.reason;
}

TEST(Calibration, WarmUpGoesOnWhileTimesFall) {
  // Each sample is 5 % shorter than the one before: nothing settles until the rounds run out.
  SimulatedMachine falling(kSeed, {.drift = -0.05}), steady(kSeed, {});
  const Calibration cold = calibrate(falling.side("a", 1e-3), falling.side("b", 1e-3), {}, kOverhead, falling);
  const Calibration warm = calibrate(steady.side("a", 1e-3), steady.side("b", 1e-3), {}, kOverhead, steady);
  EXPECT_FALSE(cold.settled);
  EXPECT_EQ(cold.warm_up_rounds, 64u);
  EXPECT_TRUE(warm.settled);
  EXPECT_EQ(warm.warm_up_rounds, 3u);  // the first sets the mark, two hold it
}

TEST(Calibration, PrepareIsNotTimedAndFinishIs) {
  SimulatedMachine machine(kSeed, {});
  Side side = machine.side("a", 1e-3);
  const auto spend = [&machine](double seconds) { machine.side("", seconds).run(); };
  side.prepare = [&] { spend(5.0); };
  side.finish = [&] { spend(0.25); };
  EXPECT_NEAR(take_sample(side, 2, machine), 0.252, 1e-6);
}

}  // namespace
}  // namespace twinbench
