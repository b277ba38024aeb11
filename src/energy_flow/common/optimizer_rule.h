// Constants of gradient control, optimiser and schedule (C25, C26), the same in every version; the first learning rate.
#pragma once

#include <algorithm>
#include <cstdint>

namespace twinbench::energy_flow {

constexpr double kBetaFirst = 0.9, kBetaSecond = 0.999, kAdamEpsilon = 1e-8, kClipEpsilon = 1e-6;
constexpr double kLeastRate = 1e-6, kRateFactor = 0.5;  // of the schedule
constexpr double kLeastGain = 1e-4;                     // an epoch is better from this share of the best loss on
constexpr std::int64_t kPatience = 10;                  // epochs without a gain; one more lowers the rate

// What a window's end came to.
enum class WindowStatus : std::int64_t { kApplied = 0, kNotFinite = 1, kNothingToApply = 2 };

// From the configuration's learning rate.
inline double starting_rate(double configured) { return std::max(0.25 * configured, kLeastRate); }

}  // namespace twinbench::energy_flow
