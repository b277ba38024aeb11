// What one pass over oracle, baseline and candidate yields: every sum and maximum the rules need. Of complex elements
// errors and sizes are moduli, and a NaN or infinity is one of either part.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "harness/compare/host_elements.h"

namespace twinbench {

// Over the elements at which the oracle, as stored in the output's dtype, is finite; errors and sizes over the settled
// ones among them, `finite` in number.
struct ErrorStatistics {
  std::int64_t finite = 0;
  double oracle_rms = 0, oracle_max = 0;
  double whole_rms = 0;  // the oracle's, of unsettled elements too
  double baseline_rmse = 0, baseline_max_error = 0;
  double candidate_rmse = 0, candidate_max_error = 0, candidate_max_relative = 0;
  struct Likeness {
    double distance = 0, norm = 0, cosine = 1;  // L2, the norm being the other's
  };
  Likeness to_baseline, to_oracle;  // the candidate's, of unsettled elements too, for the gradient class
  double baseline_distance = 0;     // L2, of the baseline to the oracle, over the same elements
  // First element at which a NaN or infinity is not where, or not what, the oracle's is; -1: none.
  std::int64_t baseline_mask_broken = -1, candidate_mask_broken = -1;
  std::int64_t oracle_nan = -1;  // first NaN of the oracle
};

// `unsettled`: one flag an element; null: all are settled.
ErrorStatistics gather_statistics(const HostElements& oracle, const HostElements& baseline,
                                  const HostElements& candidate, c10::ScalarType stored, const bool* unsettled);

}  // namespace twinbench
