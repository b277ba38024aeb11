// Times the variants of one component on one case against each other on the CPU: paired, interleaved, in one process.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <vector>

#include "harness/roofline/ceilings.h"
#include "harness/timing/clock.h"
#include "harness/timing/paired.h"
#include "src/registry.h"

namespace twinbench {

// What is timed together: the variants of one component on one device, dtype and case.
struct Twin {
  const Component* component = nullptr;
  Device device;
  Dtype dtype = Dtype::kFp32;
  const Case* input_case = nullptr;

  std::string name() const;  // "energy_flow.simple_neuron/cpu/fp32/train"
  Cell cell(Variant variant) const;
  std::vector<Variant> variants() const;  // baseline, optimized and library where there is one
};

// The timed twins among `cells`, in their order, each once.
std::vector<Twin> twins_of(const std::vector<Cell>& cells);

struct TwinTimingOptions {
  std::uint64_t seed = 1234;
  std::string sample;  // the revision: it draws which sample is judged, and with the seed who goes first in each pair
  std::size_t max_pairs = 64;
  double seconds = 8;           // a comparison
  double interval_seconds = 0;  // one of slow variants: see PairedOptions
  double target_half_width = 0.01;
  double longest_sample_s = 0.05;  // slow baselines take one run a sample: many pairs tell more than long samples
  ClockQuality clock;
  Clock* time = nullptr;  // what measures; null: the steady clock
};

// {"timings": [a row a variant], "speedups": [a row a comparison]} as the record wants them, and how long it took to
// judge the answers (JudgingTime::add_to()). Comparisons: baseline to optimized, and, where there is one, library to
// optimized. What is timed is run() and obtaining the outputs, on contents that change in each run. Every variant is
// judged on changed inputs before, between and after its samples (see JudgedVariant): one that answers wrongly, or
// otherwise than in its first run, sleeps, or changes the process or its clock, is `rejected` and gets no speedup. One
// that throws has an error row; the others go on.
nlohmann::json time_twin(const Twin& twin, const TwinTimingOptions& options, const std::vector<Ceiling>& ceilings);

// What draws the order within pairs: nobody knows before the revision is made who goes first.
std::uint64_t order_seed(const TwinTimingOptions& options);

// How one comparison is sampled under these options.
PairedOptions paired_options(const TwinTimingOptions& options);

// Seconds that a twin's job may need on a slow machine: its comparisons', and those in which its answers are judged,
// which is most of a dear twin's time (of the text bridge's some two minutes).
double needed_seconds(const Twin& twin, const TwinTimingOptions& options);

// The null comparison: the optimized variant of each twin against itself, as the record's session holds it.
nlohmann::json null_test_row(const std::vector<Twin>& twins, const TwinTimingOptions& options);

}  // namespace twinbench
