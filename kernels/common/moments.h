// Moments of what all threads of a block hold, merged in a fixed order.
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

// Of a block of kThreads threads (a multiple of 32), all of them calling; every thread gets the result, the same bits.
// Two barriers.
template <int kThreads, class Block>
TWINBENCH_DEVICE Moments<float> block_moments(Block& block, Moments<float> own) {
  constexpr int kWarps = kThreads / simt::kWarpSize;
  TWINBENCH_UNROLL
  for (unsigned lanes = simt::kWarpSize / 2; lanes > 0; lanes /= 2)
    own = merge(own, {block.shuffle_down(own.count, lanes), block.shuffle_down(own.mean, lanes),
                      block.shuffle_down(own.squared_deviations, lanes)});
  auto partial = simt::shared_array<float, 3 * kWarps>(block);
  if (simt::lane(block) == 0) {
    const int warp = simt::warp(block);
    partial[warp] = own.count;
    partial[kWarps + warp] = own.mean;
    partial[2 * kWarps + warp] = own.squared_deviations;
  }
  block.barrier();
  Moments<float> all;
  for (int warp = 0; warp < kWarps; ++warp) {
    const float count = partial[warp], mean = partial[kWarps + warp], squares = partial[2 * kWarps + warp];
    all = merge(all, {count, mean, squares});
  }
  block.barrier();
  return all;
}

}  // namespace twinbench::kernels
