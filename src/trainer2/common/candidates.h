// The candidates of a retrieval (trainer2 C04, C05): checks of what a set-up is told of the bank.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "src/common/error.h"

namespace twinbench::trainer2 {

// int64 [1], of a bank of `capacity` slots. Throws kOutOfRange naming tensor, value and remedy.
inline void check_filled(const at::Tensor& filled, std::int64_t capacity) {
  const at::Tensor count = filled.cpu();
  if (const auto slots = *count.const_data_ptr<std::int64_t>(); slots < 0 || slots > capacity)
    throw Error(ErrorKind::kOutOfRange, "filled", std::to_string(slots),
                "from 0 to the bank's " + std::to_string(capacity) + " slots");
}

// int64 [any]: candidates whose weights are asked for, tokens first, then slots.
inline void check_inspected(const at::Tensor& inspected, std::int64_t candidates) {
  const at::Tensor list = inspected.cpu().contiguous();
  for (std::int64_t i = 0; i < list.numel(); ++i)
    if (const auto candidate = list.const_data_ptr<std::int64_t>()[i]; candidate < 0 || candidate >= candidates)
      throw Error(ErrorKind::kOutOfRange, "inspected", std::to_string(candidate),
                  "there are " + std::to_string(candidates) + " candidates, the first one is 0");
}

}  // namespace twinbench::trainer2
