// Which sample of the batch each flow belongs to: the check of what a set-up is told.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "src/common/error.h"

namespace twinbench::energy_flow {

// int32 [flows], places in a batch of `samples`. Throws kOutOfRange naming flow, value and remedy.
inline void check_samples(const at::Tensor& sample, std::int64_t samples) {
  const at::Tensor places = sample.cpu().contiguous();
  const std::int32_t* const place = places.const_data_ptr<std::int32_t>();
  for (std::int64_t flow = 0; flow < places.numel(); ++flow)
    if (place[flow] < 0 || place[flow] >= samples)
      throw Error(ErrorKind::kOutOfRange, "sample", std::to_string(place[flow]) + " of flow " + std::to_string(flow),
                  "the batch has " + std::to_string(samples) + " samples, the first one is 0");
}

}  // namespace twinbench::energy_flow
