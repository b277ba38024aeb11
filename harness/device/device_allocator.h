// What LibTorch's caching allocator of a device says about itself. Needs no CUDA header and no CUDA library.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace twinbench {

// Of one device, all streams and pools together. Bytes as the allocator rounds them.
struct DeviceAllocatorTotals {
  std::int64_t allocations = 0;      // blocks asked for since the process began
  std::int64_t allocated_bytes = 0;  // in blocks that somebody holds now
  std::int64_t peak_bytes = 0;       // highest allocated_bytes since reset_device_peak
  std::int64_t reserved_bytes = 0;   // taken from the driver, held or cached
  std::int64_t segments = 0;         // pieces it was taken in
  std::int64_t retries = 0;          // the cache had to be emptied to find room: fragmentation
  std::int64_t out_of_memory = 0;    // refusals
};

// Absent for the CPU, and where no caching allocator of that device is in this process.
std::optional<DeviceAllocatorTotals> device_allocator_totals(c10::Device device);

// Peaks count from here on. Does nothing where totals are absent.
void reset_device_peak(c10::Device device);

}  // namespace twinbench
