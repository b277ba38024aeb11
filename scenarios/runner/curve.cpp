// Medians over the ends of a curve and over its running changes.
#include "scenarios/runner/curve.h"

#include <algorithm>
#include <cmath>

#include "harness/timing/statistics.h"
#include "scenarios/runner/experiment.h"

namespace twinbench {

double last_over_first(const std::vector<double>& curve, std::size_t count) {
  const auto of = static_cast<std::ptrdiff_t>(std::min(count, std::max<std::size_t>(1, curve.size() / 2)));
  if (curve.empty()) return kInfinite;
  const std::vector<double> first(curve.begin(), curve.begin() + of), last(curve.end() - of, curve.end());
  for (const auto* ends : {&first, &last})
    for (const double value : *ends)
      if (!std::isfinite(value)) return kInfinite;
  const double ratio = median(last) / median(first);
  return std::isfinite(ratio) ? ratio : kInfinite;
}

double jumps(const std::vector<double>& curve, std::size_t count, double factor) {
  std::vector<double> before;
  double found = 0;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const double change = std::abs(curve[i] - curve[i - 1]);
    if (!std::isfinite(change)) {
      ++found;
      continue;
    }
    if (before.size() >= count) {
      const std::vector<double> running(before.end() - static_cast<std::ptrdiff_t>(count), before.end());
      found += change > factor * median(running);
    }
    before.push_back(change);
  }
  return found;
}

}  // namespace twinbench
