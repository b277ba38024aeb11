// The gate judged by itself: many comparisons of a cell with itself, and of a cell with itself made slower on purpose.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/timing/paired.h"

namespace twinbench {

constexpr double kPlantedShare = 0.05;   // so much slower a planted side is
constexpr double kNoiseForPower = 0.02;  // of the pairs' ratios: noisier comparisons promise no power
constexpr double kQualifiedConfidence = 0.95;
// What a qualified gate rests on: with no false verdict and no miss, they support at most 0.5 % and at least 99 %.
constexpr std::size_t kComparisonsWanted = 600, kPlantedWanted = 300;

struct Qualification {
  std::size_t comparisons = 0;     // of a cell with itself
  std::size_t false_verdicts = 0;  // faster or slower
  std::size_t undecided = 0;       // inconclusive: neither right nor wrong
  std::size_t planted = 0;         // of a cell with itself made slower, at most kNoiseForPower apart, with an interval
  std::size_t misses = 0;          // not slower
  std::size_t planted_too_noisy = 0;  // noisier ones, and ones too slow for an interval in their time, however judged
  std::size_t planted_wrong = 0;      // of all planted ones: faster, or same

  void add_null(const PairedResult& result);
  void add_planted(const PairedResult& result);
  void add(const Qualification& other);
  std::string lacks() const;  // empty, or how many are missing to what is wanted; runs in parts add up
  bool sound() const { return false_verdicts == 0 && misses == 0 && planted_wrong == 0; }
};

// The side with kPlantedShare more work: whole runs again where a sample has enough of them, the rest spent on the
// clock.
// `run` is one iteration of the side as it is; `clock` outlives it.
Side planted_side(const Side& side, Clock& clock);

// The record's session.qualification, with what the counts support at kQualifiedConfidence (exact binomial bounds).
nlohmann::json to_json(const Qualification& qualification);
Qualification qualification_from(const nlohmann::json& row);

// The largest rate at which no more than `events` of `n` come with a probability of 1 - confidence: Clopper and
// Pearson's one-sided bound. 1 where n is 0.
double rate_at_most(std::size_t events, std::size_t n, double confidence);

}  // namespace twinbench
