// Which rows are fit for training: finite, and of a norm in [0.01, 100] on both sides (energy-flow specification C01).
#pragma once

#include <cstdint>

namespace twinbench {

inline constexpr double kSmallestRowNorm = 0.01, kLargestRowNorm = 100.0;

// Sum of squares in fp64. Finite exactly where every element is: the square of any fp32 number is far from fp64's
// limit, so one sum answers both questions. Fixed order of summation, vectorised.
double row_square_sum(const float* values, std::int64_t width);

// NaN fails both comparisons, Inf the second.
bool square_sum_is_valid(double square_sum);

// Both sides of a pair.
bool row_is_valid(const float* input, const float* target, std::int64_t width);

// In place: x / max(||x||_2, 1e-12).
void normalise_row(float* values, std::int64_t width);

}  // namespace twinbench
