// The first pass of a comparison: masks, error sums and maxima, in chunks that stay in the cache.
#include "harness/compare/error_statistics.h"

#include <algorithm>
#include <array>
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
  std::array<double, HostElements::kChunk> r, b, y;
  for (std::int64_t offset = 0; offset < oracle.size(); offset += HostElements::kChunk) {
    const std::int64_t count = std::min(HostElements::kChunk, oracle.size() - offset);
    oracle.read(offset, count, r.data());
    baseline.read(offset, count, b.data());
    candidate.read(offset, count, y.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const int kind = kind_of(stored_as(r[i], stored));
      const bool baseline_agrees = kind_of(b[i]) == kind, candidate_agrees = kind_of(y[i]) == kind;
      if (kind == 1 && result.oracle_nan < 0) result.oracle_nan = offset + i;
      if (!baseline_agrees && result.baseline_mask_broken < 0) result.baseline_mask_broken = offset + i;
      if (!candidate_agrees && result.candidate_mask_broken < 0) result.candidate_mask_broken = offset + i;
      if (kind != 0 || !baseline_agrees || !candidate_agrees) continue;
      const double baseline_error = std::abs(b[i] - r[i]), error = std::abs(y[i] - r[i]), size = std::abs(r[i]);
      ++result.finite;
      sums.oracle += r[i] * r[i];
      sums.baseline_error += baseline_error * baseline_error;
      sums.candidate_error += error * error;
      sums.distance += (y[i] - b[i]) * (y[i] - b[i]);
      sums.dot += y[i] * b[i];
      sums.baseline += b[i] * b[i];
      sums.candidate += y[i] * y[i];
      result.oracle_max = std::max(result.oracle_max, size);
      result.baseline_max_error = std::max(result.baseline_max_error, baseline_error);
      result.candidate_max_error = std::max(result.candidate_max_error, error);
      if (size > 0) result.candidate_max_relative = std::max(result.candidate_max_relative, error / size);
    }
  }
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
