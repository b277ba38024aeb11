// What a step that watches its memory asks a card's allocator for: figures, and an empty cache. The host's memory has
// neither, and the process's statistics are a system call, which variants do not make: there both are calls alone.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>

namespace twinbench::energy_flow {

// The allocator's statistics and what the driver has free. Nobody reads them.
inline void look_up_memory(const c10::Device& device) {
  if (device.is_cpu()) return;
  auto* const allocator = c10::getDeviceAllocator(device.type());
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  allocator->getDeviceStats(index);
  allocator->getMemoryInfo(index);
}

// All blocks that nobody holds go back to the driver.
inline void empty_cache(const c10::Device& device) {
  if (!device.is_cpu()) c10::getDeviceAllocator(device.type())->emptyCache();
}

}  // namespace twinbench::energy_flow
