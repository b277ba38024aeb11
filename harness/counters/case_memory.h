// The memory of one case from its set-up to its end, on the host and on its device, and what it leaves behind.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "src/registry.h"

namespace twinbench {

// Over the whole life: inputs, set-up, one run, outputs, everything destroyed.
struct MemoryUse {
  std::int64_t allocations = 0;
  std::int64_t peak_bytes = 0;    // above what was held before
  std::int64_t leaked_bytes = 0;  // still held after everything was destroyed; below zero: freed what is older
};

struct DeviceMemoryUse : MemoryUse {
  std::int64_t reserved_bytes = 0, segments = 0;  // what the caching allocator holds at the end
  std::int64_t retries = 0, out_of_memory = 0;    // during the life
};

struct CaseMemory {
  MemoryUse host;
  std::optional<DeviceMemoryUse> device;  // absent for the CPU and where the device's allocator is not in this process

  // What outlives the case, in words; empty where nothing does.
  std::string leak() const;
};

// One life of the variant. Where something outlives it, a second life decides and is what is returned: what libraries
// keep from their first use (workspaces, constants) is no leak, what every life leaves is (reference/measurement.md
// 2.9).
CaseMemory case_memory(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed);

// {"host": {...}, "device": {...} or null}
nlohmann::json to_json(const CaseMemory& memory);

}  // namespace twinbench
