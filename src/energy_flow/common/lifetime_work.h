// Columns of the output `work` of memory lifetimes (C27): what the pool and the tape did.
#pragma once

#include <cstdint>

namespace twinbench::energy_flow::memory_lifetime {

enum Work : std::int64_t {
  kDevAlloc,
  kDevFree,
  kCacheTrim,
  kTapeLive,  // bytes of tapes between micro-steps
  kTapePeak,
  kLive,
  kReserved,
  kPeak,
  kLargestFree,
  kTotalFree,
  kPredicates,  // times that compaction was asked about
  kWorkColumns
};

}  // namespace twinbench::energy_flow::memory_lifetime
