// How near the decisions of one flow's step are to going another way, in the units of the specification's 0.5.
#pragma once

#include <cmath>

#include "kernels/common/math.h"
#include "kernels/energy_flow/common/heads.h"
#include "kernels/energy_flow/common/movement.h"

namespace twinbench::energy_flow::flow_forward {

TWINBENCH_HOST_DEVICE float smaller(float a, float b) { return b < a ? b : a; }

// To the nearest value of the measure at which the number of children changes.
TWINBENCH_HOST_DEVICE float spawn_margin(const carrier_heads::Rule<float>& rule, float measure) {
  float least = 1;
  for (std::int32_t i = 0; i < rule.most; ++i) {
    const auto step = static_cast<float>(i);
    const float at = rule.gate
                         ? measure - (rule.threshold + step * (1 - rule.threshold) / static_cast<float>(rule.most))
                         : measure / rule.threshold - (step + 2);
    least = smaller(least, kernels::absolute(at));
  }
  return least;
}

// Of a flow that moved to raw, with this outcome.
TWINBENCH_HOST_DEVICE float step_margin(const flow_movement::Rule& movement, const carrier_heads::Rule<float>& heads,
                                        const carrier_heads::Results<float>& to, std::int32_t outcome) {
  if (outcome == flow_movement::kDiedNonFinite) return 1;
  const auto from_border = [](float a) { return kernels::absolute(kernels::absolute(a) - 1); };
  float least = smaller(1.0f, from_border(to.raw.z));
  if (movement.kill) least = smaller(smaller(least, from_border(to.raw.x)), from_border(to.raw.y));
  if (outcome == flow_movement::kProjectedByAge) least = smaller(least, kernels::absolute(to.raw.z));
  if (outcome == flow_movement::kStaysActive) least = smaller(least, spawn_margin(heads, to.spawn_measure));
  return least;
}

// Of a coordinate's quantisation among `extent` cells.
TWINBENCH_HOST_DEVICE float cell_margin(float coordinate, std::int32_t extent) {
  const float at = (coordinate + 1.0f) * 0.5f * static_cast<float>(extent - 1);
  const float tie = kernels::absolute(0.5f - kernels::absolute(at - std::rint(at)));
  const float share = static_cast<float>(extent - 1) / 7;
  return tie / (share > 1.0f ? share : 1.0f);
}

}  // namespace twinbench::energy_flow::flow_forward
