// Warp and block reductions of the SIMT layer: fixed order, so the same bits on every run, on host and device alike.
#pragma once

#include <cstdint>

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

// Reduction of the 32 values of a full warp by a commutative `combine(a, b)`; every lane gets the result.
template <class Block, class T, class Combine>
TWINBENCH_DEVICE T warp_reduce(Block& block, T value, Combine combine) {
  TWINBENCH_UNROLL
  for (int lanes = kWarpSize / 2; lanes > 0; lanes /= 2) value = combine(value, block.shuffle_xor(value, lanes));
  return value;
}

// Reduction over all threads of a block (a multiple of 32 threads, all of them calling); every thread gets the result.
// Two barriers, 32 elements of shared memory; the second barrier lets the next reduction reuse them.
template <class Block, class T, class Combine>
TWINBENCH_DEVICE T block_reduce(Block& block, T value, T identity, Combine combine) {
  auto partial = shared_array<T, kWarpSize, -1>(block);
  value = warp_reduce(block, value, combine);
  if (lane(block) == 0) partial[warp(block)] = value;
  block.barrier();
  T total = identity;
  if (lane(block) < warp_count(block)) total = partial[lane(block)];
  total = warp_reduce(block, total, combine);
  block.barrier();
  return total;
}

struct Sum {
  template <class T>
  TWINBENCH_HOST_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
// The larger value; a NaN on either side wins, as in ATen's max.
struct Larger {
  template <class T>
  TWINBENCH_HOST_DEVICE T operator()(T a, T b) const {
    return (a > b || a != a) ? a : b;
  }
};

template <class Block, class T>
TWINBENCH_DEVICE T warp_sum(Block& block, T value) {
  return warp_reduce(block, value, Sum{});
}
template <class Block, class T>
TWINBENCH_DEVICE T warp_max(Block& block, T value) {
  return warp_reduce(block, value, Larger{});
}
template <class Block, class T>
TWINBENCH_DEVICE T block_sum(Block& block, T value) {
  return block_reduce(block, value, T(0), Sum{});
}
template <class Block, class T>
TWINBENCH_DEVICE T block_max(Block& block, T value, T lowest) {
  return block_reduce(block, value, lowest, Larger{});
}

}  // namespace twinbench::kernels::simt
