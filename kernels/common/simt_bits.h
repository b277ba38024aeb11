// Bits of a ballot: how many lanes voted for it, and which is the first.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

TWINBENCH_DEVICE int lanes_in(std::uint32_t ballot) {
#if defined(__CUDACC__)
  return __popc(ballot);
#else
  return std::popcount(ballot);
#endif
}
// Of a ballot that is not empty.
TWINBENCH_DEVICE int first_lane(std::uint32_t ballot) {
#if defined(__CUDACC__)
  return __ffs(static_cast<int>(ballot)) - 1;
#else
  return std::countr_zero(ballot);
#endif
}

}  // namespace twinbench::kernels::simt
