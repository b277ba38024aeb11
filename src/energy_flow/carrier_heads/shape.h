// What the variants of energy_flow.carrier_heads read of a setting.
#pragma once

#include <cstdint>

#include "src/component.h"

namespace twinbench::energy_flow::carrier_heads {

struct HeadsShape {
  std::int64_t flows = 0, hidden = 0, energy_width = 0, head_width = 0;
};

struct HeadsOptions {
  bool gate;
  double noise;
  bool noise_on_z;
  std::uint64_t seed;
  std::uint32_t attempt, step;
  double scale, smallest_scale;
  std::int64_t global_step;
  double movement_threshold, gate_threshold;
  int most_spawned;
};

inline constexpr std::int64_t kWarmUp = 100, kInterval = 10;
inline constexpr double kDecay = 0.9;

inline HeadsShape checked_heads_shape(const NamedTensors&, const Setting& s) {
  return {s.size("flows"), s.size("hidden"), s.size("energy_width"), s.size("head_width")};
}

inline HeadsOptions checked_heads_options(const Setting& s) {
  return {.gate = s.on("gate"),
          .noise = s.option("noise"),
          .noise_on_z = s.on("noise_on_z"),
          .seed = static_cast<std::uint64_t>(s.option("seed")),
          .attempt = static_cast<std::uint32_t>(s.option("attempt")),
          .step = static_cast<std::uint32_t>(s.option("step")),
          .scale = s.option("scale"),
          .smallest_scale = s.option("smallest_scale"),
          .global_step = static_cast<std::int64_t>(s.option("global_step")),
          .movement_threshold = s.option("movement_threshold"),
          .gate_threshold = s.option("gate_threshold"),
          .most_spawned = static_cast<int>(s.option("most_spawned"))};
}

}  // namespace twinbench::energy_flow::carrier_heads
