// What a step that watches its memory asks a card's allocator for: figures, and an empty cache. The host's memory has
// neither, and the process's statistics are a system call, which variants do not make: there both are calls alone.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>

namespace twinbench::energy_flow {

// A card's is one.
inline c10::DeviceAllocator& allocator_of(const c10::Device& device) {
  return *static_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
}

// The allocator's statistics and what the driver has free. Nobody reads them.
inline void look_up_memory(const c10::Device& device) {
  if (device.is_cpu()) return;
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  allocator_of(device).getDeviceStats(index);
  allocator_of(device).getMemoryInfo(index);
}

// All blocks that nobody holds go back to the driver.
inline void empty_cache(const c10::Device& device) {
  if (!device.is_cpu()) allocator_of(device).emptyCache();
}

}  // namespace twinbench::energy_flow
