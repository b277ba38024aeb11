// One look at one sample (C15): the shared decision, and the flow-steps that are executed where it goes on.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/stop_rule.h"

namespace twinbench::energy_flow::adaptive_stop {

struct Look {
  StopState state = {};
  std::int64_t flow_steps = 0;  // executed so far, the step that follows this look among them
};

TWINBENCH_HOST_DEVICE Look looked(const StopRule& rule, std::int32_t step, const Look& before,
                                  const StopCounts& counts) {
  Look now;
  now.state = decided(rule, step, before.state, counts);
  now.flow_steps = before.flow_steps + (now.state.finished() ? 0 : counts.active);
  return now;
}

}  // namespace twinbench::energy_flow::adaptive_stop
