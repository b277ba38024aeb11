// A/A: a twin against itself. What shows there is the session's noise; a difference there vetoes every timing gate.
#pragma once

#include <string>
#include <vector>

#include "harness/timing/paired.h"

namespace twinbench {

struct NullCell {
  std::string cell;
  PairedResult result;
};

struct NullTest {
  TimeVerdict verdict = TimeVerdict::kInconclusive;  // same; faster or slower where any cell differs from itself
  std::string reason = "no cell was compared with itself";
  std::vector<NullCell> cells;
  std::size_t pairs = 0;  // over all cells
  // The largest relative difference a cell shows from itself: |ratio - 1| where the verdict is same, the far end of the
  // interval where it is not. 0 where nothing was measured: ask timing_gates_may_fire first.
  double noise_floor = 0;

  // Takes in one comparison of a twin with itself. A difference outranks an undecided cell.
  void add(const std::string& cell, PairedResult result);
  // False if a cell differs from itself, if a cell gave no interval, and if there is no cell.
  bool timing_gates_may_fire() const;
  // max(threshold, 3 * noise_floor): what a gate at `threshold` must use in this session.
  double effective_threshold(double threshold) const;
};

// Compares every side with itself; the cell's name is the side's. Seeds are options.seed, seed + 1, ...
NullTest null_test(const std::vector<Side>& sides, const PairedOptions& options, Clock& clock);

}  // namespace twinbench
