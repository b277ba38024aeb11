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

}  // namespace twinbench::kernels
