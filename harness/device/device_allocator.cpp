// Reads the statistics through the interface that all of LibTorch's caching allocators share.
#include "harness/device/device_allocator.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

namespace twinbench {
namespace {

// Null for the CPU, whose allocator keeps no such statistics, and before the device's own is registered and started.
c10::DeviceAllocator* allocator_of(c10::Device device) {
  if (device.is_cpu()) return nullptr;
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  return allocator && allocator->initialized() ? allocator : nullptr;
}

// A device without an index is the first one: cells name no other.
c10::DeviceIndex index_of(c10::Device device) { return std::max<c10::DeviceIndex>(device.index(), 0); }

}  // namespace

std::optional<DeviceAllocatorTotals> device_allocator_totals(c10::Device device) {
  auto* allocator = allocator_of(device);
  if (!allocator) return std::nullopt;
  const auto stats = allocator->getDeviceStats(index_of(device));
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return DeviceAllocatorTotals{stats.allocation[kAll].allocated,
                               stats.allocated_bytes[kAll].current,
                               stats.allocated_bytes[kAll].peak,
                               stats.reserved_bytes[kAll].current,
                               stats.segment[kAll].current,
                               stats.num_alloc_retries,
                               stats.num_ooms};
}

void reset_device_peak(c10::Device device) {
  if (auto* allocator = allocator_of(device)) allocator->resetPeakStats(index_of(device));
}

}  // namespace twinbench
