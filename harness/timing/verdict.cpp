// Block medians, the exact interval and the four verdicts.
#include "harness/timing/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr double kDependent = 0.2;
constexpr std::size_t kLargestBlock = 8;

std::vector<double> block_medians(std::span<const double> values, std::size_t size) {
  std::vector<double> blocks;
  for (std::size_t start = 0; start + size <= values.size(); start += size)
    blocks.push_back(median(values.subspan(start, size)));
  return blocks;
}

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

// Few values scatter around a correlation of zero by 1 / sqrt(n): twice that is no evidence of dependence.
bool still_dependent(const std::optional<double>& correlation, std::size_t count) {
  return correlation && std::abs(*correlation) > std::max(kDependent, 2 / std::sqrt(static_cast<double>(count)));
}

}  // namespace

const char* name_of(TimeVerdict verdict) {
  switch (verdict) {
    case TimeVerdict::kFaster: return "faster";
    case TimeVerdict::kSlower: return "slower";
    case TimeVerdict::kSame: return "same";
    case TimeVerdict::kInconclusive: return "inconclusive";
  }
  return "inconclusive";
}

RatioEstimate estimate_ratio(std::span<const double> log_ratios, double confidence) {
  RatioEstimate estimate;
  const std::size_t needed = sign_test_minimum_count(confidence);
  std::vector<double> values(log_ratios.begin(), log_ratios.end());
  if (values.empty()) return estimate;
  estimate.autocorrelation = lag_one_autocorrelation(values);
  std::optional<double> correlation = estimate.autocorrelation;
  bool dependent = correlation && std::abs(*correlation) > kDependent;
  while (dependent && estimate.block_size < kLargestBlock && log_ratios.size() / (2 * estimate.block_size) >= needed) {
    estimate.block_size *= 2;
    values = block_medians(log_ratios, estimate.block_size);
    correlation = lag_one_autocorrelation(values);
    dependent = still_dependent(correlation, values.size());
  }
  if (estimate.block_size > 1)
    estimate.notes.push_back("medians of blocks of " + std::to_string(estimate.block_size) +
                             " pairs: lag-1 autocorrelation " + format("%.2f", *estimate.autocorrelation));
  estimate.count = values.size();
  estimate.log_ratio = median(values);
  estimate.deviation = robust_deviation(values);
  estimate.interval = sign_test_interval(values, confidence);
  // Negative dependence (a drift that ABBA turns into alternating signs) makes the interval too wide, which is safe.
  if (estimate.interval && dependent && *correlation > 0) {
    const double r = std::min(*correlation, 0.95), factor = std::sqrt((1 + r) / (1 - r));
    estimate.interval->lower = estimate.log_ratio - factor * (estimate.log_ratio - estimate.interval->lower);
    estimate.interval->upper = estimate.log_ratio + factor * (estimate.interval->upper - estimate.log_ratio);
    estimate.notes.push_back("interval widened " + format("%.2f", factor) +
                             " times for a remaining autocorrelation of " + format("%.2f", *correlation));
  }
  return estimate;
}

TimeJudgement judge(const RatioEstimate& estimate, double threshold, double confidence) {
  if (!(threshold >= 0 && std::isfinite(threshold)))
    throw Error(ErrorKind::kOutOfRange, "threshold", std::to_string(threshold),
                "give a threshold >= 0, as 0.02 for 2 %");
  if (!estimate.interval)
    return {TimeVerdict::kInconclusive, std::to_string(estimate.count) + " usable pairs; an interval at " +
                                            format("%g %%", confidence * 100) + " needs " +
                                            std::to_string(sign_test_minimum_count(confidence))};
  const double limit = std::log1p(threshold);
  if (estimate.interval->lower > limit) return {TimeVerdict::kFaster, ""};
  if (estimate.interval->upper < -limit) return {TimeVerdict::kSlower, ""};
  if (estimate.interval->lower >= -limit && estimate.interval->upper <= limit) return {TimeVerdict::kSame, ""};
  return {TimeVerdict::kInconclusive, "interval " + interval_text(*estimate.interval) +
                                          " reaches across the threshold of " + format("%g %%", threshold * 100) +
                                          " with n = " + std::to_string(estimate.count)};
}

std::string ratio_text(double log_ratio) {
  const double ratio = std::exp(log_ratio);
  return format(ratio < 10 ? "%.3fx" : "%.1fx", ratio);
}

std::string interval_text(const Interval& log_interval) {
  const double upper = std::exp(log_interval.upper);
  const char* pattern = upper < 10 ? "%.3f" : "%.1f";
  return "[" + format(pattern, std::exp(log_interval.lower)) + ", " + format(pattern, upper) + "]";
}

}  // namespace twinbench
