// The rows that a timed twin adds to a record, and what takes a time or a ratio back: shared by all devices.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/bench/twin_timing.h"
#include "harness/timing/paired.h"

namespace twinbench {

// A "timings" row: quartiles of the samples (seconds a run); verdict error where there is none. No floor yet.
nlohmann::json timing_row(const Cell& cell, const std::string& regime, const Cost& cost,
                          const std::vector<double>& samples_s, std::int64_t iterations);

// Adds floor, share of the roof and bound to a row with a median; fails the row where it is faster than the physical
// floor of `cost`, also under ceilings measured again. Returns the reason of that failure, else nothing.
std::string judge_against_floor(nlohmann::json& row, const Cell& cell, const Cost& cost,
                                const std::vector<Ceiling>& ceilings, double cache_bytes,
                                const std::function<Ceiling(const std::string& name)>& remeasure);

void fail(nlohmann::json& row, const std::string& reason);

// The answers broke `rule`: the row keeps its samples as evidence, and nothing may be concluded from them.
void reject(nlohmann::json& row, const std::string& rule);

// A "speedups" row: time of `from` over time of `to`.
nlohmann::json speedup_row(const Twin& twin, Variant from, Variant to, const std::string& regime,
                           const PairedResult& result);

// The ratio means nothing: inconclusive, without a figure.
void withdraw(nlohmann::json& speedup, const std::string& reason);
// A side's answers broke `rule` (see JudgedVariant): no ratio, nothing that one could be computed from.
void reject_speedup(nlohmann::json& speedup, const Cell& cell, const std::string& rule);
// The ratio stands, but nobody may conclude from it.
void doubt(nlohmann::json& speedup, const std::string& reason);

}  // namespace twinbench
