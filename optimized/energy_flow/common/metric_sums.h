// The record of an optimizer window on the CPU (C29): the samples of a micro-step in one pass.
#pragma once

#include "kernels/energy_flow/common/metric_record.h"

namespace twinbench::energy_flow {

template <class Real>
void add_micro_step(MetricRecord& record, const MicroStep<Real>& step) {
  std::int64_t flow_steps = 0, steps = 0, most = record.slot[kSlotMostSteps].whole;
  for (std::int64_t i = 0; i < step.samples; ++i) {
    flow_steps += step.flow_steps[i];
    steps += step.steps[i];
    most = step.steps[i] > most ? step.steps[i] : most;
    ++record.slot[kSlotBin + step_bin(step.steps[i])].whole;
    if (const std::int32_t reason = step.reason[i]; reason >= 1 && reason <= 4)
      ++record.slot[kSlotReason + reason - 1].whole;
  }
  record.slot[kSlotFlowSteps].whole += flow_steps;
  record.slot[kSlotSteps].whole += steps;
  record.slot[kSlotMostSteps].whole = most;
  for (int slot = 0; slot < kSlots; ++slot) record.slot[slot] = with_step(slot, record.slot[slot], step);
}

}  // namespace twinbench::energy_flow
