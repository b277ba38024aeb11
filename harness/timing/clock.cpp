// The steady clock, its resolution and its empty-timer overhead.
#include "harness/timing/clock.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "harness/timing/statistics.h"

namespace twinbench {

std::int64_t SteadyClock::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ClockQuality measure_clock(Clock& clock) {
  constexpr int kEmptyRegions = 2000, kStepsWanted = 1000, kMostReadings = 200000;
  std::vector<double> empty;
  empty.reserve(kEmptyRegions);
  for (int i = 0; i < kEmptyRegions; ++i) {
    const std::int64_t start = clock.now();
    empty.push_back(seconds_between(start, clock.now()));
  }
  // A coarse clock reads zero for most empty regions, so a step is waited for rather than assumed.
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  std::int64_t before = clock.now();
  for (int reading = 0, steps = 0; reading < kMostReadings && steps < kStepsWanted; ++reading) {
    const std::int64_t now = clock.now();
    if (now == before) continue;
    smallest = std::min(smallest, now - before);
    before = now;
    ++steps;
  }
  const bool stepped = smallest != std::numeric_limits<std::int64_t>::max();
  // A median of zero only says that an empty region is shorter than a step; the mean still sees what it costs.
  double overhead = median(empty), mean = 0;
  for (const double value : empty) mean += value / kEmptyRegions;
  if (overhead <= 0) overhead = mean;
  return {stepped ? static_cast<double>(smallest) * 1e-9 : 0.0, overhead};
}

}  // namespace twinbench
