// What the device adds up over an optimizer window (C29): 32 values of 8 bytes, and how a micro-step changes each.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow {

// Places in the record. Losses, norm and rate are fp64, the rest whole numbers.
enum RecordSlot : int {
  kSlotMicroSteps,
  kSlotRows,
  kSlotSkipped,     // micro-steps whose total loss is no number
  kSlotFiniteRows,  // of the others
  kSlotLoss,        // five sums of losses times rows
  kSlotFlowSteps = kSlotLoss + 5,
  kSlotSamples,
  kSlotSteps,
  kSlotMostSteps,
  kSlotReason,                 // four
  kSlotBin = kSlotReason + 4,  // eight
  kSlotCount = kSlotBin + 8,   // five
  kSlotNorm = kSlotCount + 5,
  kSlotRate,
  kSlots
};

union RecordValue {
  std::int64_t whole;
  double real;
};
struct MetricRecord {
  RecordValue slot[kSlots];
};
static_assert(kSlots == 32 && sizeof(MetricRecord) == 256);

// Of one micro-step, on the device.
template <class Real>
struct MicroStep {
  const Real* losses = nullptr;              // [5]; the last is the total
  const std::int64_t* rows = nullptr;        // [1]
  const std::int32_t* steps = nullptr;       // [samples]
  const std::int32_t* reason = nullptr;      // [samples]
  const std::int64_t* flow_steps = nullptr;  // [samples]
  const std::int64_t* counts = nullptr;      // [5]
  std::int64_t samples = 0;
  const double *norm = nullptr, *rate = nullptr;  // [1], of the window; null before its last micro-step
};

// 0: at most 1, 1: 2, 2: 3 to 4, ..., 7: above 64.
TWINBENCH_HOST_DEVICE int step_bin(std::int32_t steps) {
  int bin = 0;
  for (int b = 0; b < 7; ++b) bin += steps > (1 << b) ? 1 : 0;
  return bin;
}

TWINBENCH_HOST_DEVICE bool is_loss(int slot) { return slot >= kSlotLoss && slot < kSlotLoss + 5; }

// What the samples add to a slot: sums, the most, or how many there are of a kind.
TWINBENCH_HOST_DEVICE std::int64_t with_sample(int slot, std::int64_t before, std::int32_t steps, std::int32_t reason,
                                               std::int64_t flow_steps) {
  if (slot == kSlotMostSteps) return steps > before ? steps : before;
  const bool counted = (slot >= kSlotReason && slot < kSlotBin && reason == slot - kSlotReason + 1) ||
                       (slot >= kSlotBin && slot < kSlotCount && step_bin(steps) == slot - kSlotBin);
  return before + (slot == kSlotFlowSteps ? flow_steps : slot == kSlotSteps ? steps : counted ? 1 : 0);
}

// A slot's value after the micro-step, its samples apart: those are added before, `value` holds them.
template <class Real>
TWINBENCH_HOST_DEVICE RecordValue with_step(int slot, RecordValue value, const MicroStep<Real>& step) {
  const std::int64_t rows = *step.rows;
  const bool finite = std::isfinite(step.losses[4]);
  if (is_loss(slot)) {
    if (finite) value.real += static_cast<double>(step.losses[slot - kSlotLoss]) * static_cast<double>(rows);
  } else if (slot == kSlotNorm || slot == kSlotRate) {
    const double* const from = slot == kSlotNorm ? step.norm : step.rate;
    if (from != nullptr) value.real = *from;
  } else if (slot >= kSlotCount) {
    value.whole += step.counts[slot - kSlotCount];
  } else {
    value.whole += slot == kSlotMicroSteps   ? 1
                   : slot == kSlotRows       ? rows
                   : slot == kSlotSkipped    ? !finite
                   : slot == kSlotFiniteRows ? (finite ? rows : 0)
                   : slot == kSlotSamples    ? step.samples
                                             : 0;
  }
  return value;
}

// One launch.
struct RecordArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  MicroStep<float> step = {};
  bool is_first = false;           // of its window: the record begins at 0
  MetricRecord* record = nullptr;  // on the device
  // Where the host finds the record of a window that has ended, in memory of both: values first, then their number.
  MetricRecord* published = nullptr;  // null before the last micro-step
  std::int64_t *sequence = nullptr, number = 0;
};

}  // namespace twinbench::energy_flow
