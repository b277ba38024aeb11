// The scale of a flow's displacement by the training step (C08): constant for 100 steps, then a tenth less every ten.
// The baseline has a form of its own, so that a mistake here does not reach the oracle.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/setting.h"

namespace twinbench::energy_flow {

inline constexpr std::int64_t kFirstDecay = 100, kDecayEvery = 10;  // training steps

inline double exploration_scale(double global_step, double scale, double smallest_scale) {
  const double decays = std::floor((global_step - kFirstDecay) / kDecayEvery);
  return decays < 0 ? scale : std::max(smallest_scale, scale * std::pow(0.9, decays));
}
inline double exploration_scale(const Setting& setting) {
  return exploration_scale(setting.option("global_step"), setting.option("scale"), setting.option("smallest_scale"));
}

}  // namespace twinbench::energy_flow
