// The A/A test of a session and what it allows.
#include "harness/timing/null_comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace twinbench {
namespace {

double noise_of(const PairedResult& result) {
  if (result.verdict == TimeVerdict::kSame || !result.interval) return std::abs(result.ratio - 1);
  return std::max(std::abs(result.interval->upper - 1), std::abs(result.interval->lower - 1));
}

bool differs(const PairedResult& result) {
  return result.verdict == TimeVerdict::kFaster || result.verdict == TimeVerdict::kSlower;
}

}  // namespace

bool NullTest::timing_gates_may_fire() const {
  return !cells.empty() && std::all_of(cells.begin(), cells.end(), [](const NullCell& cell) {
    return cell.result.interval.has_value() && !differs(cell.result);
  });
}

double NullTest::effective_threshold(double threshold) const { return std::max(threshold, 3 * noise_floor); }

void NullTest::add(const std::string& cell, PairedResult result) {
  if (cells.empty()) {
    verdict = TimeVerdict::kSame;
    reason.clear();
  }
  pairs += result.pairs;
  if (result.pairs > 0) noise_floor = std::max(noise_floor, noise_of(result));
  const bool undecided = result.verdict == TimeVerdict::kInconclusive && verdict == TimeVerdict::kSame;
  if (differs(result) || undecided) {
    verdict = result.verdict;
    reason =
        cell + " against itself: " +
        (undecided ? result.reason : std::string(name_of(result.verdict)) + ", " + ratio_text(std::log(result.ratio)));
  }
  cells.push_back({cell, std::move(result)});
}

NullTest null_test(const std::vector<Side>& sides, const PairedOptions& options, Clock& clock) {
  NullTest test;
  PairedOptions cell_options = options;
  if (!cell_options.clock_quality) cell_options.clock_quality = measure_clock(clock);
  for (const Side& side : sides) {
    test.add(side.name, measure_pair(side, side, cell_options, clock));
    ++cell_options.seed;
  }
  return test;
}

}  // namespace twinbench
