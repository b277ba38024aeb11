// What one access of a warp costs the memory system: sectors of global memory, wavefronts of shared memory.
//
// Global memory is fetched in sectors of 32 bytes. Shared memory has 32 banks of 4 bytes: words of one bank that differ
// take a wavefront each; 8-byte accesses go in halves of a warp, 16-byte ones in quarters (CUDA C++ Programming Guide,
// compute capability 5.x and later).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

constexpr std::uint64_t kSectorBytes = 32;
constexpr std::uint64_t kWavefrontBytes = 128;

// One access by the lanes that take part: lane l's address is addresses[i] where lanes[i] == l, ascending.
struct WarpRequest32 {
  std::uint32_t bytes = 0;  // of each lane
  int count = 0;
  std::array<std::uint64_t, kWarpSize> addresses{};
  std::array<std::uint8_t, kWarpSize> lanes{};
};

struct Interval {
  std::uint64_t begin, end;  // bytes
};

struct RequestCost {
  std::uint64_t units = 0;         // sectors or wavefronts
  std::uint64_t ideal = 0;         // the fewest that can hold the unique bytes
  std::uint64_t unique_bytes = 0;  // that the lanes touch together
  int most_on_one_address = 0;     // lanes
  int misaligned = 0;              // lanes whose address is no multiple of the access's size
};

// `touched`: the unique bytes as ascending intervals that do not meet.
RequestCost cost_of_global(const WarpRequest32& request, std::vector<Interval>& touched);
RequestCost cost_of_shared(const WarpRequest32& request, std::vector<Interval>& touched);

}  // namespace twinbench::kernels::simt
