// Constants of the SEM optimizer (C17), the same in every version.
#pragma once

#include <cstdint>

namespace twinbench::sem {

constexpr double kBetaFirst = 0.9, kBetaSecond = 0.999, kAdamEpsilon = 1e-8;
constexpr double kClipEpsilon = 1e-6, kNoiseFloor = 1e-3;
constexpr std::int64_t kMostInARow = 3;  // suppressed steps, after which the run ends

}  // namespace twinbench::sem
