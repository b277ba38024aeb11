// Exploration in plain C++, for the variants that call ATen: the scheduled scale of a step and the noise of a flow.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/common/philox.h"
#include "src/setting.h"

namespace twinbench::energy_flow {

inline double scheduled_scale(const Setting& s) {
  double scale = s.option("scale");
  if (s.option("global_step") < 100) return scale;
  for (double step = 110; step <= s.option("global_step"); step += 10) scale *= 0.9;
  return std::max(scale, s.option("smallest_scale"));
}

// Of the flow with these keys, x, y and z, by the setting's seed, attempt, step and deviation.
inline std::array<float, 3> exploration_noise(const Setting& s, std::int64_t local_id, std::int64_t sample_key) {
  const auto count = [&s](const char* option) { return static_cast<std::uint64_t>(s.option(option)); };
  const PhiloxWords words =
      philox(count("seed"), static_cast<std::uint32_t>(local_id), static_cast<std::uint32_t>(sample_key),
             static_cast<std::uint32_t>(count("attempt")),
             philox_tag(PhiloxStream::kExplorationNoise, static_cast<std::uint32_t>(count("step"))));
  const NormalPair xy = philox_normal_pair(words.w[0], words.w[1]);
  const NormalPair z = philox_normal_pair(words.w[2], words.w[3]);
  const auto deviation = static_cast<float>(s.option("noise"));
  return {deviation * xy.cosine, deviation * xy.sine, s.on("noise_on_z") ? deviation * z.cosine : 0.0f};
}

}  // namespace twinbench::energy_flow
