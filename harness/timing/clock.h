// Where time comes from: a clock that tests can replace, and what the real one can resolve.
#pragma once

#include <cstdint>

namespace twinbench {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since an arbitrary start; never goes back.
  virtual std::int64_t now() = 0;
};

// std::chrono::steady_clock.
class SteadyClock : public Clock {
 public:
  std::int64_t now() override;
};

struct ClockQuality {
  double resolution_s = 0;  // the smallest step seen between two readings
  double overhead_s = 0;    // what timing an empty region reads: the median of many
};

// Reads the clock a few thousand times (under 1 ms on a usual machine; at most 200,000 readings of a coarse clock).
ClockQuality measure_clock(Clock& clock);

inline double seconds_between(std::int64_t start, std::int64_t end) { return static_cast<double>(end - start) * 1e-9; }

}  // namespace twinbench
