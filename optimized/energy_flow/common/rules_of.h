// The rules of one flow's step as kernels take them, from a setting's options.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/heads.h"
#include "kernels/energy_flow/common/movement.h"
#include "src/energy_flow/common/exploration_scale.h"
#include "src/setting.h"

namespace twinbench::energy_flow {

inline flow_movement::Rule movement_rule(const Setting& setting) {
  return {.kill = setting.on("boundary"),
          .drop = setting.on("on_stop"),
          .projection_age = static_cast<std::int32_t>(setting.option("projection_age"))};
}

// The step in the noise's key is left to whoever takes it.
template <class Real>
carrier_heads::Rule<Real> heads_rule(const Setting& setting, bool gate) {
  return {.scale = static_cast<Real>(exploration_scale(setting)),
          .noise = static_cast<Real>(setting.option("noise")),
          .noise_on_z = setting.on("noise_on_z") ? Real(1) : Real(0),
          .threshold = static_cast<Real>(setting.option(gate ? "gate_threshold" : "movement_threshold")),
          .most = static_cast<std::int32_t>(setting.option("most_spawned")),
          .gate = gate,
          .key = {.seed = static_cast<std::uint64_t>(setting.option("seed")),
                  .attempt = static_cast<std::uint32_t>(setting.option("attempt"))}};
}

}  // namespace twinbench::energy_flow
