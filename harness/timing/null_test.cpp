// The A/A test of a session and what it allows.
#include "harness/timing/null_test.h"

#include <algorithm>
#include <cmath>

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

NullTest null_test(const std::vector<Side>& sides, const PairedOptions& options, Clock& clock) {
  NullTest test;
  if (sides.empty()) {
    test.reason = "no cell to compare with itself";
    return test;
  }
  test.verdict = TimeVerdict::kSame;
  PairedOptions cell_options = options;
  if (!cell_options.clock_quality) cell_options.clock_quality = measure_clock(clock);
  for (const Side& side : sides) {
    PairedResult result = measure_pair(side, side, cell_options, clock);
    ++cell_options.seed;
    test.pairs += result.pairs;
    if (result.pairs > 0) test.noise_floor = std::max(test.noise_floor, noise_of(result));
    // A difference outranks an undecided cell: it is what vetoes the gate.
    const bool undecided = result.verdict == TimeVerdict::kInconclusive && test.verdict == TimeVerdict::kSame;
    if (differs(result) || undecided) {
      test.verdict = result.verdict;
      test.reason = side.name + " against itself: " +
                    (differs(result) ? std::string(name_of(result.verdict)) + ", " + ratio_text(std::log(result.ratio))
                                     : result.reason);
    }
    test.cells.push_back({side.name, std::move(result)});
  }
  return test;
}

}  // namespace twinbench
