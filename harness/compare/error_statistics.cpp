// The first pass of a comparison: masks, error sums and maxima, in chunks that stay in the cache.
#include "harness/compare/error_statistics.h"

#include <algorithm>
#include <cmath>

namespace twinbench {

namespace {

struct Sums {
  double oracle = 0, baseline_error = 0, candidate_error = 0, distance = 0, dot = 0, baseline = 0, candidate = 0;
};

double square(double value) { return value * value; }
double square(Complex value) { return std::norm(value); }
double product(double a, double b) { return a * b; }
double product(Complex a, Complex b) { return a.real() * b.real() + a.imag() * b.imag(); }

template <class Value>
ErrorStatistics gathered(const HostElements& oracle, const HostElements& baseline, const HostElements& candidate,
                         c10::ScalarType stored) {
  ErrorStatistics result;
  Sums sums;
  for_each_element<Value>(oracle, baseline, candidate, [&](std::int64_t i, Value r, Value b, Value y) {
    const int kind = kind_of(stored_as(r, stored));
    const bool baseline_agrees = kind_of(b) == kind, candidate_agrees = kind_of(y) == kind;
    if (kind != 0 && result.oracle_nan < 0 && holds_nan(r)) result.oracle_nan = i;
    if (!baseline_agrees && result.baseline_mask_broken < 0) result.baseline_mask_broken = i;
    if (!candidate_agrees && result.candidate_mask_broken < 0) result.candidate_mask_broken = i;
    if (kind != 0 || !baseline_agrees || !candidate_agrees) return;
    const double baseline_error = std::abs(b - r), error = std::abs(y - r), size = std::abs(r);
    ++result.finite;
    sums.oracle += square(r);
    sums.baseline_error += baseline_error * baseline_error;
    sums.candidate_error += error * error;
    sums.distance += square(y - b);
    sums.dot += product(y, b);
    sums.baseline += square(b);
    sums.candidate += square(y);
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

}  // namespace

ErrorStatistics gather_statistics(const HostElements& oracle, const HostElements& baseline,
                                  const HostElements& candidate, c10::ScalarType stored) {
  return (baseline.is_complex() ? gathered<Complex> : gathered<double>)(oracle, baseline, candidate, stored);
}

}  // namespace twinbench
