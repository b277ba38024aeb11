// What every variant of sem.selective_scan refuses, and the limits of its step sizes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/max.h>

#include <string>

#include "src/common/error.h"

namespace twinbench::sem {

constexpr double kShortestStep = 1e-4, kLongestStep = 2.0;

// Beyond it the angle of a step, up to kLongestStep * a_phase, has fewer than four digits left in fp32.
constexpr double kLargestPhase = 1024;

// Reads one number, at set-up. NaN is no phase to refuse: it shows in the results.
inline void check_phases(const at::Tensor& a_phase) {
  const double largest = at::max(at::abs(a_phase)).item().toDouble();
  if (largest > kLargestPhase)
    throw Error(ErrorKind::kOutOfRange, "a_phase", std::to_string(largest),
                "at most " + std::to_string(static_cast<int>(kLargestPhase)) +
                    " either way: the angle of a longer turn is rounding alone");
}

}  // namespace twinbench::sem
