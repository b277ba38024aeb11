// The first pass of a comparison: masks, error sums and maxima, in chunks that stay in the cache.
#include "harness/compare/error_statistics.h"

#include <algorithm>
#include <cmath>

namespace twinbench {

namespace {

// 0 finite, 1 NaN, 2 +Inf, 3 -Inf.
int kind_of(double value) {
  if (std::isfinite(value)) return 0;
  return std::isnan(value) ? 1 : value > 0 ? 2 : 3;
}

struct Sums {
  double oracle = 0, baseline_error = 0, candidate_error = 0, distance = 0, dot = 0, baseline = 0, candidate = 0;
};

}  // namespace

ErrorStatistics gather_statistics(const HostElements& oracle, const HostElements& baseline,
                                  const HostElements& candidate, c10::ScalarType stored) {
  ErrorStatistics result;
  Sums sums;
  for_each_element(oracle, baseline, candidate, [&](std::int64_t i, double r, double b, double y) {
    const int kind = kind_of(stored_as(r, stored));
    const bool baseline_agrees = kind_of(b) == kind, candidate_agrees = kind_of(y) == kind;
    if (kind == 1 && result.oracle_nan < 0) result.oracle_nan = i;
    if (!baseline_agrees && result.baseline_mask_broken < 0) result.baseline_mask_broken = i;
    if (!candidate_agrees && result.candidate_mask_broken < 0) result.candidate_mask_broken = i;
    if (kind != 0 || !baseline_agrees || !candidate_agrees) return;
    const double baseline_error = std::abs(b - r), error = std::abs(y - r), size = std::abs(r);
    ++result.finite;
    sums.oracle += r * r;
    sums.baseline_error += baseline_error * baseline_error;
    sums.candidate_error += error * error;
    sums.distance += (y - b) * (y - b);
    sums.dot += y * b;
    sums.baseline += b * b;
    sums.candidate += y * y;
    result.oracle_max = std::max(result.oracle_max, size);
    result.baseline_max_error = std::max(result.baseline_max_error, baseline_error);
    result.candidate_max_error = std::max(result.candidate_max_error, error);
    if (size > 0) result.candidate_max_relative = std::max(result.candidate_max_relative, error / size);
  });
  const double count = std::max<double>(1, static_cast<double>(result.finite));
  result.oracle_rms = std::sqrt(sums.oracle / count);
  result.baseline_rmse = std::sqrt(sums.baseline_error / count);
  result.candidate_rmse = std::sqrt(sums.candidate_error / count);
  result.distance = std::sqrt(sums.distance);
  result.baseline_norm = std::sqrt(sums.baseline);
  const double norms = std::sqrt(sums.baseline) * std::sqrt(sums.candidate);
  result.cosine = norms > 0 ? sums.dot / norms : (sums.baseline == sums.candidate ? 1 : 0);
  return result;
}

}  // namespace twinbench
