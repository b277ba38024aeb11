// The ratio of two timings: paired, interleaved samples in one process, so that drift and clock steps hit both sides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/timing/calibration.h"
#include "harness/timing/clock.h"
#include "harness/timing/verdict.h"

namespace twinbench {

constexpr double kGateHalfWidth = 0.0067;  // a third of a gate at 2 %
constexpr double kReportHalfWidth = 0.01;

struct PairedOptions {
  double threshold = 0.02;  // T: a difference up to this is "same"
  double confidence = 0.99;
  double target_half_width = kGateHalfWidth;  // of the interval on the log ratio: where sampling stops
  std::size_t max_pairs = 128;
  double time_budget_s = 20;     // calibration and warm-up included; one block of two pairs is always taken
  double interval_budget_s = 0;  // where that is more: what it may take to have enough pairs for any interval
  std::uint64_t seed = 1;        // draws the order of each block
  SampleLimits sample;
  std::optional<ClockQuality> clock_quality;  // measured where absent
};

// ratio = time of a / time of b, a pair at a time: above 1, b is the faster one.
struct PairedResult {
  std::string name_a, name_b;
  TimeVerdict verdict = TimeVerdict::kInconclusive;  // of b against a
  std::string reason;                                // why inconclusive; empty otherwise
  std::vector<std::string> notes;  // what else a reader must know: block medians, separate counts, an unsettled warm-up
  double ratio = 1;                // exp(median log ratio); meaningless where `pairs` is 0
  double ratio_hodges_lehmann = 1;   // the same by a second estimator: a large gap between the two shows skew
  std::optional<Interval> interval;  // on the ratio, at `confidence`
  double confidence = 0.99, threshold = 0.02;
  std::size_t pairs = 0;  // usable pairs
  std::size_t n = 0;      // values the interval rests on: pairs, or medians of `block_size` pairs
  std::size_t block_size = 1;
  std::optional<double> autocorrelation;
  std::optional<double> minimum_detectable;  // relative difference seen with probability 0.9 at this noise and n
  std::string stopped;                       // "width", "pairs" or "time": never significance
  std::uint64_t seed = 1;
  std::string order;  // "AB BA BA AB ..." in pairs, as measured
  std::int64_t iterations_a = 1, iterations_b = 1;
  std::size_t unusable_pairs = 0;            // a side read no time at all: kept in the samples, not in the ratios
  std::size_t ties = 0;                      // both sides read the same: many show a clock too coarse
  std::vector<double> samples_a, samples_b;  // seconds an iteration, every one, in pairs
  std::vector<double> log_ratios;            // ln(sample_a / sample_b) of each usable pair, in order
  double seconds = 0;                        // all that the comparison took
  ClockQuality clock;

  std::string explanation() const;  // reason and notes in one line
};

// Samples in blocks ABBA or BAAB until, at 12, 20, 32, 48, 64, 96 or 128 pairs, the interval is as narrow as wanted, or
// max_pairs or a time budget is reached. Throws what a side throws, Error(kOutOfRange) on impossible options.
PairedResult measure_pair(const Side& a, const Side& b, const PairedOptions& options, Clock& clock);
PairedResult measure_pair(const Side& a, const Side& b, const PairedOptions& options = {});  // on the steady clock

}  // namespace twinbench
