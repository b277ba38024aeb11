// Sorts by start and sweeps once.
#include "harness/gpu/intervals.h"

#include <algorithm>

namespace twinbench {

Occupation occupation_of(std::vector<DeviceInterval> intervals) {
  Occupation result;
  if (intervals.empty()) return result;
  std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  std::vector<std::uint64_t> gaps;
  std::uint64_t covered_to = intervals.front().start;
  for (const auto& interval : intervals) {
    if (interval.start > covered_to) {
      gaps.push_back(interval.start - covered_to);
      covered_to = interval.start;
    }
    if (interval.end > covered_to) {
      result.busy_ns += interval.end - covered_to;
      covered_to = interval.end;
    }
  }
  result.span_ns = covered_to - intervals.front().start;
  result.gaps = gaps.size();
  if (!gaps.empty()) {
    std::sort(gaps.begin(), gaps.end());
    result.longest_gap_ns = gaps.back();
    result.gap_95th_percentile_ns = gaps[(gaps.size() * 95 + 99) / 100 - 1];  // nearest rank
  }
  return result;
}

}  // namespace twinbench
