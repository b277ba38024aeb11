// Sums over a warp's lanes of several values at once.
#pragma once

#include "kernels/common/vectors.h"

namespace twinbench::kernels {

// The sums over all lanes of four values, in every lane. The first two steps halve how many values a lane goes on with,
// so that ten shuffles do instead of twenty. A fixed order, the same in every lane.
template <class Block>
TWINBENCH_DEVICE Floats<4> warp_sums(Block& block, const Floats<4>& value) {
  const bool upper = (simt::lane(block) & 16) != 0, odd = (simt::lane(block) & 8) != 0;
  const float first = (upper ? value.of[2] : value.of[0]) + block.shuffle_xor(upper ? value.of[0] : value.of[2], 16);
  const float second = (upper ? value.of[3] : value.of[1]) + block.shuffle_xor(upper ? value.of[1] : value.of[3], 16);
  float sum = (odd ? second : first) + block.shuffle_xor(odd ? first : second, 8);
  TWINBENCH_UNROLL
  for (int lanes = 4; lanes > 0; lanes /= 2) sum += block.shuffle_xor(sum, lanes);
  Floats<4> sums;
  TWINBENCH_UNROLL
  for (int i = 0; i < 4; ++i) sums.of[i] = block.shuffle_index(sum, 8 * i);
  return sums;
}

// The sums of kCount (a power of two) values of every lane, scattered: lane l gets a share of the sum of value
// l / parts, parts = 32 / kCount; the shares of the parts lanes with that value make the whole. kCount - 1 shuffles
// where summing one by one would take five for each.
template <int kLanes = simt::kWarpSize / 2, int kCount, class Block>
TWINBENCH_DEVICE float scattered_sums(Block& block, const float (&values)[kCount]) {
  static_assert((kCount & (kCount - 1)) == 0, "a power of two");
  if constexpr (kCount == 1) {
    return values[0];
  } else {
    const bool upper = (simt::lane(block) & kLanes) != 0;
    float half[kCount / 2];
    TWINBENCH_UNROLL
    for (int i = 0; i < kCount / 2; ++i) {
      const float kept = upper ? values[kCount / 2 + i] : values[i], given = upper ? values[i] : values[kCount / 2 + i];
      half[i] = kept + block.shuffle_xor(given, kLanes);
    }
    return scattered_sums<kLanes / 2>(block, half);
  }
}

}  // namespace twinbench::kernels
