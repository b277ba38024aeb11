// Counts runs of a component's variants: one steady run, the proof of the sin, and memory that grows with runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/counters/snapshot.h"
#include "src/common/choice.h"
#include "src/registry.h"

namespace twinbench {

struct CountedRun {
  CounterSnapshot counters;
  NamedTensors outputs;  // copies; empty unless a proof counter's formula asks for them (ProofCounter::of_result)
  std::vector<Choice> choices;  // that the set-up made
};

// Sets the variant up, runs it `warm_up` times, then counts one run(); reset() before and outputs() after it lie
// outside. Counted twice: throws kInternal, naming the counters, if the two runs differ (set the thread count and look
// for hidden state).
CountedRun count_run(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed,
                     int warm_up = 2);

struct ProofResult {
  std::string counter, formula;
  std::int64_t baseline_expected = 0, baseline_measured = 0, optimized_expected = 0, optimized_measured = 0;
  bool pass = false;
  std::string reason;  // which twin has another number than its formula; or that the size shows no sin
};

// Every proof counter of the component, both twins, for equality: a baseline that stopped committing its sin fails as
// loudly as an optimized version that started. One row a counter.
std::vector<ProofResult> check_proof(const Component& component, const Setting& setting, std::uint64_t seed);
// The same of runs that were counted already.
std::vector<ProofResult> check_proof(const Component& component, const Setting& setting, const CountedRun& baseline,
                                     const CountedRun& optimized);

// On the CUDA path, cuda or simt: why the optimized variant's run is none that the specification allows. More launches
// than it has, another number of a proof counter than the formula's (with `chose`, more: set-up had
// a choice of ways, and the formula is that of the one that does the most). Empty where nothing is wrong.
std::string device_limits_broken(const Cell& cell, const CounterSnapshot& measured, bool chose = false);

struct GrowthResult {
  bool pass = false;
  std::int64_t runs = 0;
  std::int64_t bytes = 0;  // live memory gained over those runs
  std::string reason;
};

// Live memory after each of `runs` runs that follow a warm-up must be the same: no variant, baseline or optimized,
// may keep anything from run to run.
GrowthResult check_growth(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed,
                          int runs = 6);

}  // namespace twinbench
