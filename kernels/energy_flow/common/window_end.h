// Arithmetic of an optimizer window's end (C25, C26), host and device; in the namespace that had it first.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/adamw.h"

namespace twinbench::energy_flow::optimizer {

constexpr double kRateFloor = 1e-6, kRateCut = 0.5;  // of the learning rate
constexpr double kGain = 1e-4;                       // of the best loss, from which on an epoch is better
constexpr std::int64_t kMostBadEpochs = 10;
constexpr std::int64_t kWasApplied = 0, kWasNotFinite = 1, kHadNothing = 2;  // a window's status

using Step = kernels::AdamwStep;

// The rule's own numbers, as they were given.
struct Rule {
  double clip = 0, weight_decay = 0;  // a clip of 0 or less: none
};

// What a run starts from and leaves.
struct Counts {
  std::int64_t applied, skipped, bad_epochs;
};
struct Schedule {
  double rate, best;
};

// What a window brings beside its gradients: by what they are multiplied before anything else, and how many of its
// micro-steps have contributed.
struct Window {
  float factor;
  std::int64_t micro_steps;
};

// What a window's end tells.
struct Outcome {
  std::int64_t status;
  double coefficient;  // 0 where no update is applied
};

// `norm`: of the gradients times the factor. Counts the window.
TWINBENCH_HOST_DEVICE Step decided(const Rule& rule, const Window& window, double norm, double rate, Counts& counts,
                                   Outcome& outcome) {
  outcome = {window.micro_steps < 1 ? kHadNothing : std::isfinite(norm) ? kWasApplied : kWasNotFinite, 0};
  counts.skipped += outcome.status == kWasNotFinite;
  if (outcome.status != kWasApplied) return {};
  ++counts.applied;
  const double bound = rule.clip / (norm + kernels::kClipFloor);
  outcome.coefficient = rule.clip > 0 && bound < 1 ? bound : 1;
  return kernels::adamw_step(counts.applied, window.factor * outcome.coefficient, rate, rule.weight_decay);
}

// The plateau schedule, from the mean loss of the epoch that ends. One that is not finite changes nothing.
TWINBENCH_HOST_DEVICE void end_epoch(double loss, Schedule& schedule, Counts& counts) {
  if (!std::isfinite(loss)) return;
  if (loss < schedule.best * (1 - kGain)) {
    schedule.best = loss;
    counts.bad_epochs = 0;
  } else if (++counts.bad_epochs > kMostBadEpochs) {
    const double cut = schedule.rate * kRateCut;
    schedule.rate = cut < kRateFloor ? kRateFloor : cut;
    counts.bad_epochs = 0;
  }
}

}  // namespace twinbench::energy_flow::optimizer
