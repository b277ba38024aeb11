// The first pass of a comparison: masks, error sums and maxima, in chunks that stay in the cache.
#include "harness/compare/error_statistics.h"

#include <algorithm>
#include <cmath>

namespace twinbench {

namespace {

struct Sums {
  double oracle = 0, baseline_error = 0, candidate_error = 0;
};

double square(double value) { return value * value; }
double square(Complex value) { return std::norm(value); }
double product(double a, double b) { return a * b; }
double product(Complex a, Complex b) { return a.real() * b.real() + a.imag() * b.imag(); }

// The candidate against another answer.
struct Pair {
  double distance = 0, dot = 0, candidate = 0, other = 0;
  template <class Value>
  void add(Value y, Value x) {
    distance += square(y - x);
    dot += product(y, x);
    candidate += square(y);
    other += square(x);
  }
  ErrorStatistics::Likeness likeness() const {
    const double norms = std::sqrt(other) * std::sqrt(candidate);
    return {std::sqrt(distance), std::sqrt(other), norms > 0 ? dot / norms : (other == candidate ? 1.0 : 0.0)};
  }
};

template <class Value>
ErrorStatistics gathered(const HostElements& oracle, const HostElements& baseline, const HostElements& candidate,
                         c10::ScalarType stored, const bool* unsettled) {
  ErrorStatistics result;
  Sums sums;
  Pair with_baseline, with_oracle;
  std::int64_t all = 0;
  for_each_element<Value>(oracle, baseline, candidate, [&](std::int64_t i, Value r, Value b, Value y) {
    const int kind = kind_of(stored_as(r, stored));
    const bool baseline_agrees = kind_of(b) == kind, candidate_agrees = kind_of(y) == kind;
    if (kind != 0 && result.oracle_nan < 0 && holds_nan(r)) result.oracle_nan = i;
    if (!baseline_agrees && result.baseline_mask_broken < 0) result.baseline_mask_broken = i;
    if (!candidate_agrees && result.candidate_mask_broken < 0) result.candidate_mask_broken = i;
    if (kind != 0 || !baseline_agrees || !candidate_agrees) return;
    with_baseline.add(y, b);
    with_oracle.add(y, r);
    result.baseline_distance += square(b - r);
    ++all;
    if (unsettled && unsettled[i]) return;
    const double baseline_error = std::abs(b - r), error = std::abs(y - r), size = std::abs(r);
    ++result.finite;
    sums.oracle += square(r);
    sums.baseline_error += baseline_error * baseline_error;
    sums.candidate_error += error * error;
    result.oracle_max = std::max(result.oracle_max, size);
    result.baseline_max_error = std::max(result.baseline_max_error, baseline_error);
    result.candidate_max_error = std::max(result.candidate_max_error, error);
    if (size > 0) result.candidate_max_relative = std::max(result.candidate_max_relative, error / size);
  });
  const double count = std::max<double>(1, static_cast<double>(result.finite));
  result.oracle_rms = std::sqrt(sums.oracle / count);
  result.baseline_rmse = std::sqrt(sums.baseline_error / count);
  result.candidate_rmse = std::sqrt(sums.candidate_error / count);
  result.to_baseline = with_baseline.likeness();
  result.to_oracle = with_oracle.likeness();
  result.baseline_distance = std::sqrt(result.baseline_distance);
  result.whole_rms = result.to_oracle.norm / std::sqrt(std::max<double>(1, static_cast<double>(all)));
  return result;
}

}  // namespace

ErrorStatistics gather_statistics(const HostElements& oracle, const HostElements& baseline,
                                  const HostElements& candidate, c10::ScalarType stored, const bool* unsettled) {
  return (baseline.is_complex() ? gathered<Complex> : gathered<double>)(oracle, baseline, candidate, stored, unsettled);
}

}  // namespace twinbench
