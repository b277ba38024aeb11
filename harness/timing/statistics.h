// Robust statistics of timing samples: exact intervals on a median, never an assumption of normal noise.
// Every function throws Error(kNonFinite) on NaN or Inf and Error(kOutOfRange) on fewer values than it needs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace twinbench {

struct Interval {
  double lower = 0, upper = 0;
  double half_width() const { return (upper - lower) / 2; }
  bool contains(double value) const { return lower <= value && value <= upper; }
};

struct Quartiles {
  double first = 0, median = 0, third = 0;
};

// NamedTensors beyond Tukey's fences: more than 1.5 (mild) or 3 (severe) interquartile ranges outside the quartiles.
// They are counted and shown, never removed.
struct OutlierCounts {
  std::size_t mild = 0, severe = 0;
};

// The mean of the two middle values where their number is even. Needs one value.
double median(std::span<const double> values);

// Linear interpolation between order statistics at position q * (n - 1), as NumPy's default. Needs one value.
Quartiles quartiles(std::span<const double> values);

// Needs one value.
OutlierCounts count_outliers(std::span<const double> values);

// Interquartile range / 1.34898: the standard deviation where the noise is normal, undisturbed by spikes. Needs one
// value.
double robust_deviation(std::span<const double> values);

// The median of all pairwise means, each value with itself included: n (n + 1) / 2 of them. Needs one value.
double hodges_lehmann(std::span<const double> values);

// Correlation of each value with the next, in order of measurement. Absent below three values or without any spread.
std::optional<double> lag_one_autocorrelation(std::span<const double> values);

// Rank r of the exact sign-test interval [x_(r), x_(n + 1 - r)]: the largest r whose coverage
// 1 - 2 P(Binomial(n, 1/2) < r) still reaches `confidence`. 0: no such interval exists for so few values.
std::size_t sign_test_rank(std::size_t n, double confidence);

// The smallest n for which an interval exists: 6 at 0.95, 8 at 0.99.
std::size_t sign_test_minimum_count(double confidence);

// The interval on the median from the order statistics of sign_test_rank. Distribution-free: it assumes independent
// values only. Absent below sign_test_minimum_count.
std::optional<Interval> sign_test_interval(std::span<const double> values, double confidence = 0.99);

// The shift of a median that the two-sided sign test at `confidence` finds with probability `power`, for n values with
// normal noise of the given standard deviation: deviation * Phi^-1(p), where P(Binomial(n, p) > n - r) = power and r is
// sign_test_rank. Absent where no interval exists.
std::optional<double> minimum_detectable_effect(std::size_t n, double deviation, double confidence = 0.99,
                                                double power = 0.9);

}  // namespace twinbench
