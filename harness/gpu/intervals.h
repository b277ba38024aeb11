// Unions of and gaps between time intervals.
#pragma once

#include <cstdint>
#include <vector>

namespace twinbench {

struct DeviceInterval {
  std::uint64_t start = 0, end = 0;
};

struct Occupation {
  std::uint64_t busy_ns = 0;                                     // covered by at least one interval
  std::uint64_t span_ns = 0;                                     // from the first start to the last end
  std::uint64_t longest_gap_ns = 0, gap_95th_percentile_ns = 0;  // between intervals, inside the span
  std::uint64_t gaps = 0;
};

// Overlapping and touching intervals count once. Empty input: all zero. The order of the input does not matter.
Occupation occupation_of(std::vector<DeviceInterval> intervals);

}  // namespace twinbench
