// What every version of the SEM optimizer (C17) computes on the host: constants, clip coefficient, counts, status.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/common/error.h"

namespace twinbench::sem {

constexpr double kBetaFirst = 0.9, kBetaSecond = 0.999, kAdamEpsilon = 1e-8;
constexpr double kClipEpsilon = 1e-6, kNoiseFloor = 1e-3;
constexpr std::int64_t kMostInARow = 3;  // suppressed steps, after which the run ends

// Updates applied, steps suppressed, and those suppressed right before. None is below 0; checked at set-up.
inline void check_counts(const at::Tensor& given) {
  const at::Tensor counts = given.cpu().contiguous();
  for (std::int64_t i = 0; i < counts.numel(); ++i)
    if (const std::int64_t count = counts.const_data_ptr<std::int64_t>()[i]; count < 0)
      throw Error(ErrorKind::kOutOfRange, "counts", std::to_string(count), "updates are counted from 0");
}

}  // namespace twinbench::sem
