// Order statistics, the exact sign test and the estimators built on them.
#include "harness/timing/statistics.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr double kInterquartileRangeOfNormal = 1.3489795003921634;  // 2 Phi^-1(0.75)

std::vector<double> checked(std::span<const double> values) {
  if (values.empty()) throw Error(ErrorKind::kOutOfRange, "values", "0 values", "give at least one value");
  for (const double value : values)
    if (!std::isfinite(value))
      throw Error(ErrorKind::kNonFinite, "values", std::to_string(value), "a sample must be a finite number");
  return {values.begin(), values.end()};
}

void check_probability(const char* field, double value) {
  if (!(value > 0 && value < 1))
    throw Error(ErrorKind::kOutOfRange, field, std::to_string(value), "give a probability between 0 and 1");
}

double median_in_place(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return (below + *middle) / 2;
}

double quantile_of_sorted(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto index = static_cast<std::size_t>(position);
  if (index + 1 >= sorted.size()) return sorted.back();
  return sorted[index] + (position - static_cast<double>(index)) * (sorted[index + 1] - sorted[index]);
}

// P(Binomial(n, p) <= k), each term from its logarithm so that it neither underflows nor cancels.
double binomial_cumulative(std::size_t k, std::size_t n, double p) {
  const double log_odds = std::log(p) - std::log1p(-p);
  double log_term = static_cast<double>(n) * std::log1p(-p), sum = 0;
  for (std::size_t i = 0; i <= k && i <= n; ++i) {
    sum += std::exp(log_term);
    log_term += std::log(static_cast<double>(n - i) / static_cast<double>(i + 1)) + log_odds;
  }
  return std::min(sum, 1.0);
}

// The x where the decreasing function is zero, between low and high, to the last bit.
template <typename Decreasing>
double root_of_decreasing(double low, double high, Decreasing function) {
  for (int step = 0; step < 200; ++step) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (function(middle) > 0 ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

double normal_quantile(double p) {
  return root_of_decreasing(-40.0, 40.0, [p](double x) { return p - 0.5 * std::erfc(-x / std::sqrt(2.0)); });
}

}  // namespace

double median(std::span<const double> values) {
  std::vector<double> copy = checked(values);
  return median_in_place(copy);
}

Quartiles quartiles(std::span<const double> values) {
  std::vector<double> sorted = checked(values);
  std::sort(sorted.begin(), sorted.end());
  return {quantile_of_sorted(sorted, 0.25), quantile_of_sorted(sorted, 0.5), quantile_of_sorted(sorted, 0.75)};
}

OutlierCounts count_outliers(std::span<const double> values) {
  const Quartiles q = quartiles(values);
  const double range = q.third - q.first;
  OutlierCounts counts;
  for (const double value : values) {
    const double beyond = std::max(q.first - value, value - q.third);
    if (beyond > 3 * range)
      ++counts.severe;
    else if (beyond > 1.5 * range)
      ++counts.mild;
  }
  return counts;
}

double robust_deviation(std::span<const double> values) {
  const Quartiles q = quartiles(values);
  return (q.third - q.first) / kInterquartileRangeOfNormal;
}

double hodges_lehmann(std::span<const double> values) {
  const std::vector<double> copy = checked(values);
  std::vector<double> means;
  means.reserve(copy.size() * (copy.size() + 1) / 2);
  for (std::size_t i = 0; i < copy.size(); ++i)
    for (std::size_t j = i; j < copy.size(); ++j) means.push_back((copy[i] + copy[j]) / 2);
  return median_in_place(means);
}

std::optional<double> lag_one_autocorrelation(std::span<const double> values) {
  if (values.size() < 3) return std::nullopt;
  const std::vector<double> copy = checked(values);
  double mean = 0, scale = 0;
  for (const double value : copy) {
    mean += value / static_cast<double>(copy.size());
    scale = std::max(scale, std::abs(value));
  }
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < copy.size(); ++i) {
    squares += (copy[i] - mean) * (copy[i] - mean);
    if (i > 0) products += (copy[i] - mean) * (copy[i - 1] - mean);
  }
  // Equal values differ from their computed mean by rounding only; their correlation would be that of rounding errors.
  const double rounding = scale * 1e-14;
  if (squares <= static_cast<double>(copy.size()) * rounding * rounding) return std::nullopt;
  return products / squares;
}

std::size_t sign_test_rank(std::size_t n, double confidence) {
  check_probability("confidence", confidence);
  const double log_two = std::log(2.0);
  double log_term = -static_cast<double>(n) * log_two, below = 0;  // below = P(Binomial(n, 1/2) < rank)
  std::size_t rank = 0;
  while (2 * rank < n) {
    below += std::exp(log_term);
    if (2 * below > 1 - confidence) break;
    log_term += std::log(static_cast<double>(n - rank) / static_cast<double>(rank + 1));
    ++rank;
  }
  return rank;
}

std::size_t sign_test_minimum_count(double confidence) {
  std::size_t n = 1;
  while (sign_test_rank(n, confidence) == 0) ++n;
  return n;
}

std::optional<Interval> sign_test_interval(std::span<const double> values, double confidence) {
  const std::size_t rank = sign_test_rank(values.size(), confidence);
  if (rank == 0) return std::nullopt;
  std::vector<double> sorted = checked(values);
  std::sort(sorted.begin(), sorted.end());
  return Interval{sorted[rank - 1], sorted[sorted.size() - rank]};
}

std::optional<double> minimum_detectable_effect(std::size_t n, double deviation, double confidence, double power) {
  check_probability("power", power);
  if (!(std::isfinite(deviation) && deviation >= 0))
    throw Error(ErrorKind::kOutOfRange, "deviation", std::to_string(deviation), "give a finite deviation >= 0");
  const std::size_t rank = sign_test_rank(n, confidence);
  if (rank == 0) return std::nullopt;
  // Found when at most rank - 1 values lie on the wrong side: when more than n - rank of n lie on the right one.
  const double p = root_of_decreasing(
      1e-12, 1 - 1e-12, [&](double chance) { return binomial_cumulative(n - rank, n, chance) - (1 - power); });
  return deviation * normal_quantile(p);
}

}  // namespace twinbench
