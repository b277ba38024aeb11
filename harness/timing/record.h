// Timing results as the rows of a record: strict JSON, no NaN or Infinity.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "harness/timing/null_comparison.h"
#include "harness/timing/paired.h"

namespace twinbench {

// The fields of a "speedups" row that the comparison itself knows: ratio, lower, upper (null where no interval exists),
// confidence, n, verdict, reason, autocorrelation, log_ratios. The caller adds component, device, dtype, case, from, to
// and regime.
nlohmann::json speedup_fields(const PairedResult& result);

// The fields of a "timings" row that samples give: n, median_s, q1_s, q3_s, minimum_s, samples_s. Needs one sample.
nlohmann::json timing_fields(std::span<const double> samples_s);

// session.null_test: verdict, pairs, noise_floor (null where nothing was measured), cells of {cell, ratio, lower,
// upper, n}.
nlohmann::json to_json(const NullTest& test);

}  // namespace twinbench
