// A warp's part of a tile of 64 rows by 3 x 8 columns through tensor cores in TF32 (C16, C17): a lane has eight
// neighbouring rows and two columns of each eight, as a thread of the same tile has in fp32. In the namespace of the
// component that had it first; the whole backward pass takes it too.
#pragma once

#include "kernels/common/simt_mma.h"
#include "kernels/common/vectors.h"

namespace twinbench::energy_flow::flow_forward {

constexpr int kTf32Depth = 8;  // of the inner length at a time

// A lane's rows at one place of the inner length.
struct Tf32Eight {
  kernels::Floats<4> first, second;
};

// sums[c][row] += left row * right column, over eight places of the inner length. A lane gives its rows at place
// lane % 4 (low) and four further on (high), and at the same places column lane / 4 of the warp's eight; its sums are
// of columns 2 * (lane % 4) and the next one. Row g of 16-row tile i is row 2 * i of lane group g, row g + 8 the next.
template <class Block>
TWINBENCH_DEVICE void multiply_tf32_tiles(Block& block, const Tf32Eight& low, const Tf32Eight& high, float right_low,
                                          float right_high, float (&sums)[2][8]) {
  namespace simt = kernels::simt;
  const simt::RightTile right = {{simt::tf32_bits(right_low), simt::tf32_bits(right_high)}};
  TWINBENCH_UNROLL
  for (int i = 0; i < 4; ++i) {
    const kernels::Floats<4>&near = i < 2 ? low.first : low.second, &far = i < 2 ? high.first : high.second;
    const int row = i % 2 * 2;
    const simt::LeftTile left = {{simt::tf32_bits(near.of[row]), simt::tf32_bits(near.of[row + 1]),
                                  simt::tf32_bits(far.of[row]), simt::tf32_bits(far.of[row + 1])}};
    simt::TileSum sum = {{sums[0][2 * i], sums[1][2 * i], sums[0][2 * i + 1], sums[1][2 * i + 1]}};
    simt::multiply_tf32(block, sum, left, right);
    sums[0][2 * i] = sum.of[0], sums[1][2 * i] = sum.of[1];
    sums[0][2 * i + 1] = sum.of[2], sums[1][2 * i + 1] = sum.of[3];
  }
}

}  // namespace twinbench::energy_flow::flow_forward
