// From log ratios to an interval, and from the interval to a verdict: a pure function of numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/timing/statistics.h"

namespace twinbench {

enum class TimeVerdict { kFaster, kSlower, kSame, kInconclusive };

const char* name_of(TimeVerdict verdict);  // "faster", "slower", "same", "inconclusive"

// The centre of a set of log ratios in order of measurement, with its exact interval.
struct RatioEstimate {
  double log_ratio = 0;                   // median
  std::optional<Interval> interval;       // on log_ratio; absent where too few values exist
  std::size_t count = 0;                  // values the interval rests on: pairs, or block medians
  std::size_t block_size = 1;             // pairs a value
  double deviation = 0;                   // robust standard deviation of those values
  std::optional<double> autocorrelation;  // lag one, of the pairs
  std::vector<std::string> notes;
};

// Pairs that lean on their neighbours (|lag-1 autocorrelation| > 0.2) carry less than they seem to: medians of
// blocks of
// 2, 4 or 8 neighbours then take their place, while enough remain for an interval. What dependence is left after that
// widens the interval by sqrt((1 + r) / (1 - r)). Both are said in the notes.
RatioEstimate estimate_ratio(std::span<const double> log_ratios, double confidence);

struct TimeJudgement {
  TimeVerdict verdict = TimeVerdict::kInconclusive;
  std::string reason;  // never empty for inconclusive
};

// ratio = time of a / time of b. Faster: b is faster than a by more than `threshold` (0.02: 2 %) with the whole
// interval beyond it; slower likewise; same: the whole interval lies within the threshold both ways; else inconclusive.
TimeJudgement judge(const RatioEstimate& estimate, double threshold, double confidence);

// "2.31x", "0.98x", and "[2.28, 2.34]" from logarithms: enough digits to tell 1.002 from 1.
std::string ratio_text(double log_ratio);
std::string interval_text(const Interval& log_interval);

}  // namespace twinbench
