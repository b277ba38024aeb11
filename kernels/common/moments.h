// Moments of a vector, and of what all threads of a block hold, merged in a fixed order.
#pragma once

#include "kernels/common/layer_norm.h"
#include "kernels/common/vectors.h"

namespace twinbench::kernels {

template <int kWidth>
TWINBENCH_DEVICE Moments<float> moments_of(const Floats<kWidth>& values) {
  Moments<float> result{.count = kWidth};
  TWINBENCH_UNROLL
  for (int i = 0; i < kWidth; ++i) result.mean += values.of[i];
  result.mean *= 1.0f / kWidth;
  TWINBENCH_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    const float deviation = values.of[i] - result.mean;
    result.squared_deviations = multiply_add(deviation, deviation, result.squared_deviations);
  }
  return result;
}

// Of a block's threads (a multiple of 32, all of them calling), `count` values in all; every thread gets the result,
// the same bits, and no division stands between the merges. Four barriers.
template <class Block>
TWINBENCH_DEVICE Moments<float> block_moments(Block& block, const Moments<float>& own, float count) {
  const float mean = simt::block_sum(block, own.count * own.mean) / count, away = own.mean - mean;
  const float squares = multiply_add(own.count * away, away, own.squared_deviations);
  return {count, mean, simt::block_sum(block, squares)};
}

}  // namespace twinbench::kernels
