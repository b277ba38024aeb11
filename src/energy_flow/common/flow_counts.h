// How many flows of each sample have completed, been created and are active, step by step: the check of what a set-up
// is told.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "src/common/error.h"
#include "src/named_tensors.h"

namespace twinbench::energy_flow {

// int32 tensors of those names. Throws kOutOfRange naming tensor, value and remedy.
inline void check_counts(const NamedTensors& inputs) {
  for (const char* name : {"completed", "created", "active"}) {
    const at::Tensor counts = inputs[name].cpu().contiguous();
    const std::int32_t* const count = counts.const_data_ptr<std::int32_t>();
    const std::int32_t* const least = std::min_element(count, count + counts.numel());
    if (counts.numel() > 0 && *least < 0)
      throw Error(ErrorKind::kOutOfRange, name, std::to_string(*least), "give numbers of flows, from 0 on");
  }
}

}  // namespace twinbench::energy_flow
