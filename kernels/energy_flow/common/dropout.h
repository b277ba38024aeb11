// Dropout of the text encoder (C18): which elements a site drops follows from sample, element and attempt alone.
#pragma once

#include <cstdint>

#include "src/common/philox.h"

namespace twinbench::energy_flow {

// `site`: its number in execution order. An element's number is its place in the sample's own tensor, without padding.
template <class Real>
struct Dropout {
  bool on = false;
  std::uint64_t seed = 0;
  std::uint32_t attempt = 0, site = 0;
  float rate = 0;
  Real scale = 1;                            // of what is kept: 1 / (1 - rate)
  const std::int64_t *sample_key = nullptr;  // [samples]

  TWINBENCH_HOST_DEVICE Real kept(Real value, std::int64_t sample, std::int64_t element) const {
    if (!on) return value;
    const PhiloxWords words =
        philox(seed, static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(sample_key[sample]), attempt,
               philox_tag(PhiloxStream::kDropout, site));
    return philox_uniform_open(words.w[0]) > rate ? value * scale : Real(0);
  }
};

}  // namespace twinbench::energy_flow
