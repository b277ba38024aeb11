// The sampling loop of a paired comparison and its stopping rule.
#include "harness/timing/paired.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/common/error.h"
#include "src/common/philox.h"

namespace twinbench {
namespace {

constexpr std::array<std::size_t, 7> kCheckpoints = {12, 20, 32, 48, 64, 96, 128};

void check(const PairedOptions& options) {
  const auto positive = [](const char* field, double value) {
    if (!(value > 0 && std::isfinite(value)))
      throw Error(ErrorKind::kOutOfRange, field, std::to_string(value), "give a positive number");
  };
  positive("time_budget_s", options.time_budget_s);
  positive("target_half_width", options.target_half_width);
  positive("minimum_sample_s", options.sample.minimum_sample_s);
  positive("max_pairs", static_cast<double>(options.max_pairs));
  positive("maximum_iterations", static_cast<double>(options.sample.maximum_iterations));
}

// The multiples of 128 go on past the listed checkpoints for a caller who allows more pairs.
bool is_checkpoint(std::size_t pairs) {
  return std::find(kCheckpoints.begin(), kCheckpoints.end(), pairs) != kCheckpoints.end() || pairs % 128 == 0;
}

// Pair 2k draws who goes first, pair 2k + 1 mirrors it: a linear drift cancels within the block of four samples.
bool a_goes_first(std::uint64_t seed, std::size_t pair) {
  const auto block = static_cast<std::uint64_t>(pair / 2);
  const bool drawn = philox(seed, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                            philox_tag(PhiloxStream::kShuffle, 0), 0)
                         .w[0] &
                     1u;
  return drawn == (pair % 2 == 0);
}

void take_pair(const Side& a, const Side& b, Clock& clock, PairedResult& result) {
  const bool a_first = a_goes_first(result.seed, result.samples_a.size());
  double total_a = 0, total_b = 0;
  if (a_first) total_a = take_sample(a, result.iterations_a, clock);
  total_b = take_sample(b, result.iterations_b, clock);
  if (!a_first) total_a = take_sample(a, result.iterations_a, clock);
  const double sample_a = total_a / static_cast<double>(result.iterations_a);
  const double sample_b = total_b / static_cast<double>(result.iterations_b);
  result.order += result.order.empty() ? "" : " ";
  result.order += a_first ? "AB" : "BA";
  result.samples_a.push_back(sample_a);
  result.samples_b.push_back(sample_b);
  const double log_ratio = std::log(sample_a / sample_b);
  if (sample_a > 0 && sample_b > 0 && std::isfinite(log_ratio)) {
    result.log_ratios.push_back(log_ratio);
    if (total_a == total_b) ++result.ties;
  } else {
    ++result.unusable_pairs;
  }
}

// Samples until a stopping rule holds; leaves its name in result.stopped.
void take_pairs(const Side& a, const Side& b, const PairedOptions& options, std::int64_t start, double pair_s,
                Clock& clock, PairedResult& result) {
  const std::int64_t first_pair = clock.now();
  while (result.samples_a.size() < options.max_pairs) {
    const std::size_t taken = result.samples_a.size();
    const std::int64_t now = clock.now();
    if (taken > 0) pair_s = seconds_between(first_pair, now) / static_cast<double>(taken);
    const bool block_starts = taken % 2 == 0;
    const auto beyond = [&](double budget_s) { return seconds_between(start, now) + 2 * pair_s > budget_s; };
    if (block_starts && taken > 0 && beyond(options.time_budget_s) &&
        (beyond(options.interval_budget_s) || estimate_ratio(result.log_ratios, options.confidence).interval)) {
      result.stopped = "time";
      return;
    }
    take_pair(a, b, clock, result);
    if (!is_checkpoint(result.samples_a.size())) continue;
    const RatioEstimate estimate = estimate_ratio(result.log_ratios, options.confidence);
    if (estimate.interval && estimate.interval->half_width() <= options.target_half_width) {
      result.stopped = "width";
      return;
    }
  }
  result.stopped = "pairs";
}

constexpr double kLeastOfSample = 0.2;

// The shorter side's median sample, as a share of the length that calibration aimed at.
double shrunk_to(const PairedResult& result, const PairedOptions& options) {
  const double wanted_s =
      std::max(options.sample.minimum_sample_s, options.sample.overhead_multiple * result.clock.overhead_s);
  if (result.samples_a.empty() || wanted_s <= 0) return 1;
  return std::min(median(result.samples_a) * static_cast<double>(result.iterations_a),
                  median(result.samples_b) * static_cast<double>(result.iterations_b)) /
         wanted_s;
}

void conclude(const Calibration& calibration, const PairedOptions& options, PairedResult& result) {
  result.pairs = result.log_ratios.size();
  RatioEstimate estimate = estimate_ratio(result.log_ratios, options.confidence);
  result.n = estimate.count;
  result.block_size = estimate.block_size;
  result.autocorrelation = estimate.autocorrelation;
  if (result.pairs > 0) {
    result.ratio = std::exp(estimate.log_ratio);
    result.ratio_hodges_lehmann = std::exp(hodges_lehmann(result.log_ratios));
  }
  if (estimate.interval) {
    result.interval = Interval{std::exp(estimate.interval->lower), std::exp(estimate.interval->upper)};
    if (const auto effect = minimum_detectable_effect(result.n, estimate.deviation, options.confidence))
      result.minimum_detectable = std::expm1(*effect);
  }
  const TimeJudgement judgement = judge(estimate, options.threshold, options.confidence);
  result.verdict = judgement.verdict;
  result.reason = judgement.reason;
  if (result.verdict == TimeVerdict::kInconclusive && result.stopped == "time")
    result.reason += "; the time budget is spent";
  if (calibration.too_short) {
    result.verdict = TimeVerdict::kInconclusive;
    result.reason = "too short to time: " + std::to_string(result.iterations_a) +
                    " iterations do not reach the required multiple of the timer's overhead";
  }
  if (const double shrunk = shrunk_to(result, options); !calibration.too_short && shrunk < kLeastOfSample) {
    result.verdict = TimeVerdict::kInconclusive;
    result.reason = "runs became " + std::to_string(static_cast<int>(1 / std::max(shrunk, 1e-3))) +
                    " times faster once the iterations of a sample were chosen: the warm-up was not what followed";
  }
  result.notes = calibration.notes;
  result.notes.insert(result.notes.end(), estimate.notes.begin(), estimate.notes.end());
  if (result.unusable_pairs > 0)
    result.notes.push_back(std::to_string(result.unusable_pairs) + " pairs unusable: the clock read no time");
  if (5 * result.ties > result.pairs && result.pairs > 0)
    result.notes.push_back(std::to_string(result.ties) + " of " + std::to_string(result.pairs) +
                           " pairs tie exactly: the clock is coarse for this sample");
}

}  // namespace

std::string PairedResult::explanation() const {
  std::string text = reason;
  for (const std::string& note : notes) text += (text.empty() ? "" : "; ") + note;
  return text;
}

PairedResult measure_pair(const Side& a, const Side& b, const PairedOptions& options, Clock& clock) {
  check(options);
  const std::int64_t start = clock.now();
  PairedResult result;
  result.name_a = a.name;
  result.name_b = b.name;
  result.confidence = options.confidence;
  result.threshold = options.threshold;
  result.seed = options.seed;
  result.clock = options.clock_quality ? *options.clock_quality : measure_clock(clock);
  const Calibration calibration = calibrate(a, b, options.sample, result.clock.overhead_s, clock);
  result.iterations_a = calibration.iterations_a;
  result.iterations_b = calibration.iterations_b;
  take_pairs(a, b, options, start, calibration.pair_s, clock, result);
  conclude(calibration, options, result);
  result.seconds = seconds_between(start, clock.now());
  return result;
}

PairedResult measure_pair(const Side& a, const Side& b, const PairedOptions& options) {
  SteadyClock clock;
  return measure_pair(a, b, options, clock);
}

}  // namespace twinbench
