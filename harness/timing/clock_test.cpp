// Resolution and overhead of a clock, on simulated clocks whose values are known and on the real one.
#include "harness/timing/clock.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

// Every reading costs `cost` ns; what is shown is rounded down to a multiple of `step` ns.
class StepClock : public Clock {
 public:
  StepClock(std::int64_t cost, std::int64_t step) : cost_(cost), step_(step) {}
  std::int64_t now() override {
    time_ += cost_;
    return time_ / step_ * step_;
  }

 private:
  std::int64_t cost_, step_, time_ = 0;
};

TEST(Clock, FindsResolutionAndOverheadOfAFineClock) {
  StepClock clock(25, 1);
  const ClockQuality quality = measure_clock(clock);
  EXPECT_NEAR(quality.overhead_s, 25e-9, 1e-15);
  EXPECT_NEAR(quality.resolution_s, 25e-9, 1e-15);
}

TEST(Clock, ACoarseClockShowsItsStepAndStillAnOverhead) {
  StepClock clock(23, 1000);
  const ClockQuality quality = measure_clock(clock);
  EXPECT_NEAR(quality.resolution_s, 1000e-9, 1e-15);
  EXPECT_NEAR(quality.overhead_s, 23e-9, 2e-9);
}

TEST(Clock, AStoppedClockEndsTheMeasurement) {
  StepClock clock(0, 1);
  const ClockQuality quality = measure_clock(clock);
  EXPECT_EQ(quality.resolution_s, 0);
  EXPECT_EQ(quality.overhead_s, 0);
}

TEST(Clock, TheSteadyClockIsFineEnoughToTimeWith) {
  SteadyClock clock;
  const ClockQuality quality = measure_clock(clock);
  EXPECT_GT(quality.resolution_s, 0);
  EXPECT_LT(quality.resolution_s, 1e-4);
  EXPECT_GT(quality.overhead_s, 0);
  EXPECT_LT(quality.overhead_s, 1e-4);
}

}  // namespace
}  // namespace twinbench
