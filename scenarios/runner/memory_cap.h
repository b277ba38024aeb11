// Bytes of tensors under a cap, and the most that were held.
#pragma once

#include <cstdint>

#include "harness/device/device_allocator.h"
#include "harness/memory/tracked_allocator.h"

namespace twinbench {

// The host's allocator refuses beyond so many bytes of tensors while it lives: Error kOutOfMemory, the same on every
// machine.
class MemoryCap {
 public:
  explicit MemoryCap(std::int64_t bytes) { TrackedAllocator::instance().limit_live_bytes(bytes); }
  ~MemoryCap() { TrackedAllocator::instance().limit_live_bytes(0); }
  MemoryCap(const MemoryCap&) = delete;
  MemoryCap& operator=(const MemoryCap&) = delete;
};

// Highest number of bytes held since it was made, on host and device.
class MemoryPeak {
 public:
  explicit MemoryPeak(c10::Device device) : device_(device), meter_(TrackedAllocator::instance().open_peak()) {
    reset_device_peak(device);
  }
  ~MemoryPeak() { TrackedAllocator::instance().close_peak(meter_); }
  MemoryPeak(const MemoryPeak&) = delete;
  MemoryPeak& operator=(const MemoryPeak&) = delete;
  double bytes() const {
    double bytes = static_cast<double>(TrackedAllocator::instance().peak(meter_));
    if (const auto totals = device_allocator_totals(device_)) bytes += static_cast<double>(totals->peak_bytes);
    return bytes;
  }

 private:
  c10::Device device_;
  int meter_;
};

}  // namespace twinbench
