// How near the decisions of one flow's step are to going another way, in the units of the specification's 0.5.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/energy_flow/common/heads.h"
#include "optimized/energy_flow/common/rules.h"

namespace twinbench::energy_flow::flow_forward {

// To the nearest value of the measure at which the number of children changes.
inline float spawn_margin(const carrier_heads::Rule<float>& rule, float measure) {
  float least = 1;
  for (std::int32_t i = 0; i < rule.most; ++i) {
    const auto step = static_cast<float>(i);
    least = std::min(
        least, rule.gate
                   ? std::abs(measure - (rule.threshold + step * (1 - rule.threshold) / static_cast<float>(rule.most)))
                   : std::abs(measure / rule.threshold - (step + 2)));
  }
  return least;
}

// Of a flow that moved to raw, with this outcome.
inline float step_margin(const flow_movement::Rule& movement, const carrier_heads::Rule<float>& heads,
                         const carrier_heads::Results<float>& to, std::int32_t outcome) {
  if (outcome == flow_movement::kDiedNonFinite) return 1;
  const auto from_border = [](float a) { return std::abs(std::abs(a) - 1); };
  float least = std::min(1.0f, from_border(to.raw.z));
  if (movement.kill) least = std::min({least, from_border(to.raw.x), from_border(to.raw.y)});
  if (outcome == flow_movement::kProjectedByAge) least = std::min(least, std::abs(to.raw.z));
  if (outcome == flow_movement::kStaysActive) least = std::min(least, spawn_margin(heads, to.spawn_measure));
  return least;
}

// Of a coordinate's quantisation among `extent` cells.
inline float cell_margin(float coordinate, std::int32_t extent) {
  const float at = (coordinate + 1.0f) * 0.5f * static_cast<float>(extent - 1);
  const float tie = std::abs(0.5f - std::abs(at - std::rint(at)));
  return tie / std::max(1.0f, static_cast<float>(extent - 1) / 7);
}

}  // namespace twinbench::energy_flow::flow_forward
