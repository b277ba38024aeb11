// Philox4x32-10 (Salmon et al., SC 2011): the counter-based generator that both variants of a component share,
// so that their random inputs are equal bit for bit. Host and device; no state, no torch.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/common/host_device.h"

namespace twinbench {

struct PhiloxWords {
  std::uint32_t w[4];
};

// The streams a counter can belong to (energy-flow specification, section 0.6). Part of counter word 3.
enum class PhiloxStream : std::uint32_t {
  kExplorationNoise = 1,
  kDropout = 2,
  kShuffle = 3,
  kWeights = 4,
  kSyntheticData = 5,
};

TWINBENCH_HOST_DEVICE std::uint32_t philox_high(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * b) >> 32);
}

// Ten rounds over the four counter words under the two key words of `seed` (low word first).
TWINBENCH_HOST_DEVICE PhiloxWords philox(std::uint64_t seed, std::uint32_t c0, std::uint32_t c1, std::uint32_t c2,
                                         std::uint32_t c3) {
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t h0 = philox_high(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
    const std::uint32_t h1 = philox_high(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Counter word 3: the stream in the upper half, a 16-bit tag (flow step, data field) in the lower.
TWINBENCH_HOST_DEVICE std::uint32_t philox_tag(PhiloxStream stream, std::uint32_t tag) {
  return (static_cast<std::uint32_t>(stream) << 16) | (tag & 0xFFFFu);
}

// (0, 1], exact in fp32: safe under a logarithm.
TWINBENCH_HOST_DEVICE float philox_uniform_open(std::uint32_t word) {
  return static_cast<float>((word >> 8) + 1u) * 0x1p-24f;
}

// [0, 1), exact in fp32.
TWINBENCH_HOST_DEVICE float philox_uniform(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

struct NormalPair {
  float cosine, sine;
};

// Box-Muller on two words; the first word feeds the radius, the second the angle.
TWINBENCH_HOST_DEVICE NormalPair philox_normal_pair(std::uint32_t radius, std::uint32_t angle) {
  const float r = std::sqrt(-2.0f * std::log(philox_uniform_open(radius)));
  const float turn = 6.283185307179586f * philox_uniform(angle);
  return {r * std::cos(turn), r * std::sin(turn)};
}

}  // namespace twinbench
