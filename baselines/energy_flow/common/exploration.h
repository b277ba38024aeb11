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
  // A decay that changes nothing more is the last, however many steps there were.
  for (double step = 110, before = 0; step <= s.option("global_step") && scale != before; step += 10)
    before = scale, scale *= 0.9;
  return std::max(scale, s.option("smallest_scale"));
}

// The noise of flows by 0.6, drawn on the host: ATen has generators of its own only.
class ExplorationNoise {
 public:
  explicit ExplorationNoise(const Setting& s)
      : deviation_(static_cast<float>(s.option("noise"))),
        on_z_(s.on("noise_on_z")),
        seed_(static_cast<std::uint64_t>(s.option("seed"))),
        attempt_(static_cast<std::uint32_t>(s.option("attempt"))) {}

  bool on() const { return deviation_ != 0; }

  // x, y and z of one flow in a step.
  std::array<float, 3> draw(std::int64_t sample_key, std::int64_t local_id, std::int64_t step) const {
    const PhiloxWords words =
        philox(seed_, static_cast<std::uint32_t>(local_id), static_cast<std::uint32_t>(sample_key), attempt_,
               philox_tag(PhiloxStream::kExplorationNoise, static_cast<std::uint32_t>(step)));
    const NormalPair xy = philox_normal_pair(words.w[0], words.w[1]);
    return {deviation_ * xy.cosine, deviation_ * xy.sine,
            on_z_ ? deviation_ * philox_normal_pair(words.w[2], words.w[3]).cosine : 0.0f};
  }

 private:
  const float deviation_;
  const bool on_z_;
  const std::uint64_t seed_;
  const std::uint32_t attempt_;
};

}  // namespace twinbench::energy_flow
