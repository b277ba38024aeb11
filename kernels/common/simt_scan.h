// Groups of lanes, and scans: prefix sums over a warp or a block, and sums by segment. Fixed order, so the same bits on
// every run, on host and device alike.
#pragma once

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

// Shuffles within groups of kGroup neighbouring lanes (a power of two). All 32 lanes call.
// The value `delta` lanes further up the group, or the own one where there is none.
template <int kGroup, class Block, class T>
TWINBENCH_DEVICE T group_shuffle_down(Block& block, T value, int delta) {
  static_assert(kGroup > 0 && kGroup <= kWarpSize && (kGroup & (kGroup - 1)) == 0,
                "groups are a power of two of lanes");
#if defined(__CUDACC__)
  return __shfl_down_sync(kFullMask, value, static_cast<unsigned>(delta), kGroup);
#else
  const int own = lane(block);
  return block.shuffle_index(value, own % kGroup + delta < kGroup ? own + delta : own);
#endif
}
// The value of lane `of` of the group.
template <int kGroup, class Block, class T>
TWINBENCH_DEVICE T group_shuffle_index(Block& block, T value, int of) {
  static_assert(kGroup > 0 && kGroup <= kWarpSize && (kGroup & (kGroup - 1)) == 0,
                "groups are a power of two of lanes");
#if defined(__CUDACC__)
  return __shfl_sync(kFullMask, value, of, kGroup);
#else
  return block.shuffle_index(value, lane(block) / kGroup * kGroup + of % kGroup);
#endif
}
// The sum over a group, in every lane of it.
template <int kGroup, class Block, class T>
TWINBENCH_DEVICE T group_sum(Block& block, T value) {
  static_assert(kGroup > 0 && kGroup <= kWarpSize && (kGroup & (kGroup - 1)) == 0,
                "groups are a power of two of lanes");
  TWINBENCH_UNROLL
  for (int lanes = kGroup / 2; lanes > 0; lanes /= 2) value += block.shuffle_xor(value, lanes);
  return value;
}

// The sum of the values of this lane and all lanes before it. All 32 lanes call.
template <class Block, class T>
TWINBENCH_DEVICE T warp_inclusive_sum(Block& block, T value) {
  TWINBENCH_UNROLL
  for (int delta = 1; delta < kWarpSize; delta *= 2) {
    const T before = block.shuffle_index(value, lane(block) - delta >= 0 ? lane(block) - delta : lane(block));
    if (lane(block) >= delta) value += before;
  }
  return value;
}

// The sum over this lane and those before it that belong to the same run of equal segments (segments ascend by lane, or
// at least lie together). Read it in the last lane of a run for the run's sum.
template <class Block, class T>
TWINBENCH_DEVICE T warp_segment_sum(Block& block, T value, int segment) {
  TWINBENCH_UNROLL
  for (int delta = 1; delta < kWarpSize; delta *= 2) {
    const int from = lane(block) - delta >= 0 ? lane(block) - delta : lane(block);
    const T before = block.shuffle_index(value, from);
    const int segment_before = block.shuffle_index(segment, from);
    if (lane(block) >= delta && segment_before == segment) value += before;
  }
  return value;
}

// Prefix sums over all threads of a block (a multiple of 32, all of them calling). Two barriers.
template <class T>
struct Prefix {
  T before;  // of all threads of lower rank
  T total;   // of the whole block
};
template <class Block, class T>
TWINBENCH_DEVICE Prefix<T> block_exclusive_sum(Block& block, T value) {
  auto partial = shared_array<T, kWarpSize, -2>(block);
  const T inclusive = warp_inclusive_sum(block, value);
  if (lane(block) == kWarpSize - 1) partial[warp(block)] = inclusive;
  block.barrier();
  T own = T(0);
  if (lane(block) < warp_count(block)) own = partial[lane(block)];
  const T sums = warp_inclusive_sum(block, own);  // of whole warps, the same in every warp
  const T before = block.shuffle_index(sums, warp(block) > 0 ? warp(block) - 1 : 0);
  const T in_warp = block.shuffle_index(inclusive, lane(block) > 0 ? lane(block) - 1 : 0);
  const T total = block.shuffle_index(sums, warp_count(block) - 1);
  block.barrier();
  return {(warp(block) > 0 ? before : T(0)) + (lane(block) > 0 ? in_warp : T(0)), total};
}

}  // namespace twinbench::kernels::simt
