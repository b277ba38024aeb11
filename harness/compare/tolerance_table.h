// The constants of the comparison rules, by numeric mode and by stored dtype.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "src/component.h"

namespace twinbench {

struct NumericTable {
  double relative, absolute;  // element-wise: PyTorch's assert_close defaults for the mode
  double whole_factor;        // whole-tensor: how many times the baseline's RMSE a candidate may have
};

inline NumericTable numeric_table(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp64: return {1e-7, 1e-7, 2};
    case Dtype::kFp32: return {1.3e-6, 1e-5, 2};
    case Dtype::kBf16: return {1.6e-2, 1e-5, 3};
    case Dtype::kTf32: return {1e-3, 1e-5, 3};
    case Dtype::kFp16: return {1e-3, 1e-5, 3};
  }
  return {0, 0, 0};
}

// Distance from 1 to the next number the dtype can store: outputs of bf16 mode that are stored in fp32 have fp32's,
// their larger error is in the baseline's RMSE already.
inline double epsilon_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Float:
    case c10::ScalarType::ComplexFloat: return 0x1p-23;
    case c10::ScalarType::BFloat16: return 0x1p-7;
    case c10::ScalarType::Half: return 0x1p-10;
    default: return 0x1p-52;
  }
}

// The fewer elements, the less the baseline's RMSE says about the error that is usual here.
constexpr std::int64_t kFewElements = 1000, kVeryFewElements = 16;
constexpr double kFewFactor = 5, kVeryFewFactor = 10;
constexpr double kPoorBaseline = 0.05;  // RMSE(baseline) above this share of rms(oracle): the case is invalid
// A gradient that is nothing but fp64's own rounding, as LayerNorm's over a single value: 0 is as right as 1e-29.
constexpr double kVanishedGradient = 1e-24;
constexpr double kMagnitudeFloor = 0.01;  // share of rms(oracle) that caps the absolute tolerance: zeros must fail
constexpr double kHonestFactor = 8;       // an element may err by 8 baseline RMSE, or 8 times its largest error

}  // namespace twinbench
