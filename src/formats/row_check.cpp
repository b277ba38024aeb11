// The row sum, compiled once per vector width and chosen when the program is loaded.
#include "src/formats/row_check.h"

#include <algorithm>
#include <cmath>

// Clones are resolved by the loader before a sanitizer's runtime is up, and clang needs none of this for fuzzing.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TWINBENCH_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TWINBENCH_VECTOR_CLONES
#endif

namespace twinbench {

TWINBENCH_VECTOR_CLONES double row_square_sum(const float* values, std::int64_t width) {
  // Explicit vectors: the order of summation is the same at every optimization level and vector width.
  using Floats = float __attribute__((vector_size(32)));
  using Doubles = double __attribute__((vector_size(64)));
  constexpr std::int64_t kLanes = 8;
  Doubles even{}, odd{};
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    Floats loaded[2];
    __builtin_memcpy(loaded, values + i, sizeof(loaded));
    const Doubles first = __builtin_convertvector(loaded[0], Doubles);
    const Doubles second = __builtin_convertvector(loaded[1], Doubles);
    even += first * first;
    odd += second * second;
  }
  double sum = 0;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) sum += even[lane] + odd[lane];
  for (; i < width; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

bool square_sum_is_valid(double square_sum) {
  const double norm = std::sqrt(square_sum);
  return norm >= kSmallestRowNorm && norm <= kLargestRowNorm;
}

bool row_is_valid(const float* input, const float* target, std::int64_t width) {
  return square_sum_is_valid(row_square_sum(input, width)) && square_sum_is_valid(row_square_sum(target, width));
}

void normalise_row(float* values, std::int64_t width) {
  const double norm = std::max(std::sqrt(row_square_sum(values, width)), 1e-12);
  for (std::int64_t i = 0; i < width; ++i) values[i] = static_cast<float>(values[i] / norm);
}

}  // namespace twinbench
