// Real comparisons whose verdict is known beforehand, over the cells that are timed.
#pragma once

#include "harness/bench/twin_timing.h"
#include "harness/timing/qualification.h"

namespace twinbench {

// The variant set up once; `rounds` times two comparisons with itself and one with itself made slower, under `options`
// (a comparison's seed is options.seed plus its number). On the CPU.
Qualification qualify_on(const Cell& cell, const TwinTimingOptions& options, std::size_t rounds);

}  // namespace twinbench
