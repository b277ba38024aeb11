// When the flows of a sample have moved enough (C15): the decision before each step. Host and device, the same bits:
// its division is IEEE's in double on both. The stop's own component and the whole forward pass share it.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow {

enum class StopReason : std::int32_t { kNone, kExhausted, kMaxSteps, kThreshold, kPatience };

struct StopRule {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  double threshold = 0.95;     // share of the created flows that must have completed
  std::int32_t max_steps = 0;  // at most so many are executed
  std::int32_t min_steps = 5;  // no look at what has completed before so many
  std::int32_t patience = 3;   // looks in a row, from 1 on, at which no more had completed; none before the first has
  bool convergence = true;     // else a sample ends when it is exhausted or at max_steps
};

// What a sample's flows have come to when `step` steps have been executed.
struct StopCounts {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int32_t completed = 0;  // done or projected; flows that died are not
  std::int32_t created = 0;    // all that were admitted, spawned ones too
  std::int32_t active = 0;
};

// Of one sample, for the time of one forward pass: it starts as it is here.
struct StopState {
  std::int32_t best = 0, stall = 0;  // most that had completed, and looks in a row since then
  std::int32_t steps = 0;            // executed so far; the sample's K once there is a reason
  StopReason reason = StopReason::kNone;

  TWINBENCH_HOST_DEVICE bool finished() const { return reason != StopReason::kNone; }
};

// Before step `step`, from 0 to max_steps. A sample that has finished stays as it is, whatever is counted: what is
// issued beyond its end changes nothing.
TWINBENCH_HOST_DEVICE StopState decided(const StopRule& rule, std::int32_t step, const StopState& before,
                                        const StopCounts& counts) {
  if (before.finished()) return before;
  StopState now = before;
  now.steps = step;
  if (counts.active == 0) {
    now.reason = StopReason::kExhausted;
  } else if (step >= rule.max_steps) {
    now.reason = StopReason::kMaxSteps;
  } else if (rule.convergence && step >= rule.min_steps) {
    // 19 of 20 are the literal 0.95.
    if (static_cast<double>(counts.completed) / static_cast<double>(counts.created) >= rule.threshold) {
      now.reason = StopReason::kThreshold;
    } else if (counts.completed > before.best) {
      now.best = counts.completed;
      now.stall = 0;
    } else if (before.best > 0) {
      ++now.stall;
      if (now.stall >= rule.patience) now.reason = StopReason::kPatience;
    }
  }
  return now;
}

// The states of all samples, [samples] each. Step 0 starts them, so nothing need be set before a pass.
struct StopStates {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int32_t *best = nullptr, *stall = nullptr, *steps = nullptr, *reason = nullptr;

  TWINBENCH_HOST_DEVICE StopState before(std::int32_t step, std::int64_t sample) const {
    if (step == 0) return {};
    return {best[sample], stall[sample], steps[sample], static_cast<StopReason>(reason[sample])};
  }
  TWINBENCH_HOST_DEVICE void set(std::int64_t sample, const StopState& state) const {
    best[sample] = state.best;
    stall[sample] = state.stall;
    steps[sample] = state.steps;
    reason[sample] = static_cast<std::int32_t>(state.reason);
  }
};

// The host looks before steps 8, 16, ... whether all samples have finished, and does not wait for the answer.
constexpr std::int32_t kStepsPerPoll = 8;
constexpr bool polls_before(std::int32_t step) { return step > 0 && step % kStepsPerPoll == 0; }

}  // namespace twinbench::energy_flow
