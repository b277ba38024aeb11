// Allocations on devices other than the CPU, as LibTorch's caching allocators report them to a profiler.
#pragma once

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstdint>

namespace twinbench {

// Seen on the thread that holds the guard and on the autograd threads it starts.
class DeviceMemoryObserver final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device device) override {
    if (device.is_cpu()) return;  // counted exactly, on all threads, by TrackedAllocator
    const std::int64_t now = live += bytes;
    if (bytes > 0) {
      ++allocations;
      allocated_bytes += bytes;
      std::int64_t seen = peak;
      while (now > seen && !peak.compare_exchange_weak(seen, now)) {
      }
    } else {
      ++frees;
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::atomic<std::int64_t> allocations{0}, allocated_bytes{0}, frees{0}, live{0}, peak{0};
};

}  // namespace twinbench
