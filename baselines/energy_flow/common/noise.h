// The exploration noise of flows (0.6), drawn on the host: ATen has generators of its own only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "src/common/philox.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

class Noise {
 public:
  explicit Noise(const Setting& s)
      : deviation_(static_cast<float>(s.option("noise"))),
        on_z_(s.on("noise_on_z")),
        seed_(static_cast<std::uint64_t>(s.option("seed"))),
        attempt_(static_cast<std::uint32_t>(s.option("attempt"))) {}

  bool on() const { return deviation_ != 0; }

  // x, y and z of one flow in step t.
  void draw(std::int64_t sample_key, std::int64_t local_id, std::int64_t t, float* to) const {
    const PhiloxWords words =
        philox(seed_, static_cast<std::uint32_t>(local_id), static_cast<std::uint32_t>(sample_key), attempt_,
               philox_tag(PhiloxStream::kExplorationNoise, static_cast<std::uint32_t>(t)));
    const NormalPair xy = philox_normal_pair(words.w[0], words.w[1]);
    to[0] = deviation_ * xy.cosine;
    to[1] = deviation_ * xy.sine;
    to[2] = on_z_ ? deviation_ * philox_normal_pair(words.w[2], words.w[3]).cosine : 0.0f;
  }

 private:
  const float deviation_;
  const bool on_z_;
  const std::uint64_t seed_;
  const std::uint32_t attempt_;
};

}  // namespace twinbench::energy_flow::flow_forward
