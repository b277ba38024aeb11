// Counting verdicts that are known beforehand, and the rates that the counts support.
#include "harness/timing/qualification.h"

#include <algorithm>
#include <cmath>

#include "harness/timing/statistics.h"

namespace twinbench {
namespace {

double noise_of(const PairedResult& result) {
  return result.log_ratios.empty() ? 1 : robust_deviation(result.log_ratios);
}

// P(Binomial(n, p) <= k), by its terms' logarithms.
double cumulative(std::size_t k, std::size_t n, double p) {
  double sum = 0, log_term = static_cast<double>(n) * std::log1p(-p);
  for (std::size_t i = 0; i <= k && i <= n; ++i) {
    sum += std::exp(log_term);
    log_term += std::log(static_cast<double>(n - i) / static_cast<double>(i + 1)) + std::log(p) - std::log1p(-p);
  }
  return std::min(sum, 1.0);
}

}  // namespace

double rate_at_most(std::size_t events, std::size_t n, double confidence) {
  if (events >= n) return 1;
  double low = 0, high = 1;
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    (cumulative(events, n, middle) > 1 - confidence ? low : high) = middle;
  }
  return high;
}

void Qualification::add_null(const PairedResult& result) {
  ++comparisons;
  false_verdicts += result.verdict == TimeVerdict::kFaster || result.verdict == TimeVerdict::kSlower;
  undecided += result.verdict == TimeVerdict::kInconclusive;
}

void Qualification::add_planted(const PairedResult& result) {
  planted_wrong += result.verdict == TimeVerdict::kFaster || result.verdict == TimeVerdict::kSame;
  if (noise_of(result) > kNoiseForPower || !result.interval) {
    ++planted_too_noisy;
    return;
  }
  ++planted;
  misses += result.verdict != TimeVerdict::kSlower;
}

void Qualification::add(const Qualification& other) {
  comparisons += other.comparisons;
  false_verdicts += other.false_verdicts;
  undecided += other.undecided;
  planted += other.planted;
  misses += other.misses;
  planted_too_noisy += other.planted_too_noisy;
  planted_wrong += other.planted_wrong;
}

std::string Qualification::lacks() const {
  std::string text;
  const auto add = [&](std::size_t have, std::size_t wanted, const char* what) {
    if (have >= wanted) return;
    text += (text.empty() ? "" : " and ") + std::to_string(wanted - have) + " of " + std::to_string(wanted) + what;
  };
  add(comparisons, kComparisonsWanted, " comparisons with itself");
  add(planted, kPlantedWanted, " planted ones");
  return text;
}

Side planted_side(const Side& side, Clock& clock) {
  Side planted;
  planted.name = side.name + " with " + std::to_string(static_cast<int>(100 * kPlantedShare)) + " % more work";
  planted.prepare = side.prepare;
  planted.sample_seconds = [run = side.run, &clock](std::int64_t iterations) {
    const auto more = static_cast<std::int64_t>(kPlantedShare * static_cast<double>(iterations));
    const std::int64_t start = clock.now();
    for (std::int64_t i = 0; i < iterations; ++i) run();
    const double so_far = seconds_between(start, clock.now());
    for (std::int64_t i = 0; i < more; ++i) run();
    const double rest = kPlantedShare - static_cast<double>(more) / static_cast<double>(iterations);
    for (const std::int64_t from = clock.now(); seconds_between(from, clock.now()) < rest * so_far;) {
    }
    return seconds_between(start, clock.now());
  };
  return planted;
}

nlohmann::json to_json(const Qualification& q) {
  return {{"comparisons", q.comparisons},
          {"false_verdicts", q.false_verdicts},
          {"undecided", q.undecided},
          {"planted", q.planted},
          {"planted_share", kPlantedShare},
          {"misses", q.misses},
          {"planted_too_noisy", q.planted_too_noisy},
          {"planted_wrong", q.planted_wrong},
          {"noise_limit", kNoiseForPower},
          {"confidence", kQualifiedConfidence},
          {"false_rate_at_most", rate_at_most(q.false_verdicts, q.comparisons, kQualifiedConfidence)},
          {"power_at_least", 1 - rate_at_most(q.misses, q.planted, kQualifiedConfidence)}};
}

Qualification qualification_from(const nlohmann::json& row) {
  return {row.at("comparisons"), row.at("false_verdicts"),    row.at("undecided"),    row.at("planted"),
          row.at("misses"),      row.at("planted_too_noisy"), row.at("planted_wrong")};
}

}  // namespace twinbench
