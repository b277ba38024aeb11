// The state of the contrastive metric update (trainer2 C18): the bounds of the metric and the check of a given state.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "src/common/error.h"

namespace twinbench::trainer2 {

constexpr double kLeastMetric = 0.01, kMostMetric = 100;

// Of a given metric [axes], at set-up. Throws kOutOfRange naming tensor, value and remedy.
inline void check_metric(const at::Tensor& given) {
  const at::Tensor metric = given.cpu().to(at::kDouble).contiguous();
  for (std::int64_t axis = 0; axis < metric.numel(); ++axis)
    if (const double value = metric.const_data_ptr<double>()[axis];
        !(value >= kLeastMetric * (1 - 1e-6) && value <= kMostMetric))
      throw Error(ErrorKind::kOutOfRange, "metric", std::to_string(value) + " at axis " + std::to_string(axis),
                  "from 0.01 to 100: every update clamps it there");
}

}  // namespace twinbench::trainer2
