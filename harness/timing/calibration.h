// One timed sample of one side, and how many iterations a sample needs to rise above the timer and the noise.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/timing/clock.h"

namespace twinbench {

// One of the two things compared. Only `run` is required.
struct Side {
  std::string name;
  std::function<void()> run;      // one iteration of the timed region
  std::function<void()> prepare;  // before each sample, outside the timed region: flush a cache, restore a state
  std::function<void()> finish;   // at the end of each sample, inside the timed region: wait for a device
  // Replaces the clock loop where a device has its own timer: runs that many iterations, returns their total seconds.
  std::function<double(std::int64_t iterations)> sample_seconds;
};

struct SampleLimits {
  double minimum_sample_s = 2e-3;  // the faster side's sample lasts at least this long ...
  double overhead_multiple = 20;   // ... and this many times the empty-timer overhead
  double maximum_sample_s = 0.25;  // a side whose sample would last longer gets fewer iterations, down to one
  double warm_up_budget_s = 2;     // spent at most before the first kept sample
  std::int64_t maximum_iterations = std::int64_t{1} << 30;
};

struct Calibration {
  std::int64_t iterations_a = 1, iterations_b = 1;
  bool shared = true;      // both sides run the same count: different counts bias a ratio by about 1 %
  bool too_short = false;  // maximum_iterations do not lift the faster side above the overhead multiple
  std::size_t warm_up_rounds = 0;
  bool settled = false;  // the last two rounds of warm-up brought neither side a time 2 % below its best so far
  double pair_s = 0;     // what one sample of each side took last: for time budgets
  std::vector<std::string> notes;
};

// Total seconds of `iterations` runs. Prepares outside the timed region, finishes inside it.
double take_sample(const Side& side, std::int64_t iterations, Clock& clock);

// Finds the counts and warms both sides up. Throws what a side throws; Error(kBadArgument) where a side has nothing
// to run.
Calibration calibrate(const Side& a, const Side& b, const SampleLimits& limits, double overhead_s, Clock& clock);

}  // namespace twinbench
