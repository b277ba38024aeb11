// Dropout of the text encoder (C18) in plain C++, for the variants that call ATen.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>

#include "src/common/philox.h"
#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow {

// Factors by 0.6, drawn on the host: ATen has generators of its own only.
class EncoderDropout {
 public:
  // sample_key: int64, on the host; read by every call, so it must live as long.
  EncoderDropout(const at::Tensor& sample_key, const Setting& s)
      : rate_(s.option("dropout")),
        seed_(static_cast<std::uint64_t>(s.option("seed"))),
        attempt_(static_cast<std::uint32_t>(s.option("attempt"))),
        keys_(sample_key) {}

  bool on() const { return rate_ > 0; }

  // What the values [rows, width] of a sample are multiplied with at a site: 0, or 1 / (1 - rate).
  at::Tensor factors(const at::Tensor& values, std::int64_t sample, std::int64_t site) const {
    const auto key = static_cast<std::uint32_t>(keys_.const_data_ptr<std::int64_t>()[sample]);
    const std::uint32_t tag = philox_tag(PhiloxStream::kDropout, static_cast<std::uint32_t>(site));
    at::Tensor result = at::empty(values.sizes(), at::kFloat);
    auto* const factor = result.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < result.numel(); ++i) {
      const PhiloxWords words = philox(seed_, static_cast<std::uint32_t>(i), key, attempt_, tag);
      factor[i] = philox_uniform_open(words.w[0]) > static_cast<float>(rate_) ? 1.0f : 0.0f;
    }
    return result.to(values.options()).div_(1 - rate_);
  }

 private:
  const double rate_;
  const std::uint64_t seed_;
  const std::uint32_t attempt_;
  const at::Tensor& keys_;
};

}  // namespace twinbench::energy_flow
