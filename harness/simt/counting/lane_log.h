// What one CUDA thread touched since its warp last met; filled by the hooks that the compiler puts into kernels.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/simt/shared_memory.h"

namespace twinbench::kernels::simt {

struct LoggedAccess {
  const void* site;
  std::uint64_t address;  // of shared memory: region << 32 | byte
  std::uint32_t bytes;
  Access access;
  bool shared;
};

struct AddressRange {
  std::uintptr_t begin = 0, bytes = 0;
  bool holds(std::uintptr_t address) const { return address - begin < bytes; }
};

inline AddressRange range_of(const void* begin, std::size_t bytes) {
  return {reinterpret_cast<std::uintptr_t>(begin), bytes};
}
// The stack of the OS thread that launches: kernels' parameters lie there.
AddressRange own_stack();

struct LaneLog {
  std::vector<LoggedAccess> accesses;
  // Registers, parameters and constants of a card lie here on the host: stacks, the executor, the program's own data.
  std::array<AddressRange, 5> not_global;

  void add_global(const void* site, const void* address, std::uint32_t bytes, Access access) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    for (const AddressRange& range : not_global)
      if (range.holds(at)) return;
    accesses.push_back({site, at, bytes, access, false});
  }
};

// Of the thread that runs now where an observer counts; null otherwise, so that a hook costs a load and a branch.
extern thread_local LaneLog* current_lane_log;

}  // namespace twinbench::kernels::simt
