// The process-wide CPU allocator wrapper: counts every block on every thread and, on request, guards and poisons it.
#pragma once

#include <c10/core/Allocator.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace twinbench::kernels::simt {
class GuardedMemory;
}

namespace twinbench {

// What lies around guarded blocks.
enum class Guard {
  kBands,  // patterned bytes: a write there is found afterwards
  kPages,  // pages that nobody may touch, from the block's end (16-byte aligned) on and some way before its beginning:
           // a kernel that the SIMT executor runs and that reads or writes there is a finding at once
};

// Running totals since the wrapper was installed. Blocks of zero bytes are not blocks; blocks older than the wrapper
// are unknown to it and are never counted, neither when made nor when freed.
struct AllocationTotals {
  std::int64_t allocations = 0, allocated_bytes = 0, frees = 0, live_bytes = 0;
};

// A byte outside a block that no longer holds the guard pattern.
struct GuardViolation {
  std::int64_t block_bytes = 0;   // as requested
  std::int64_t block_number = 0;  // the n-th guarded block of the scope, from 0
  bool before = false;            // which band: before or after the block
  std::int64_t distance = 0;      // bytes from the block's edge to the nearest byte overwritten, 0 = adjacent
  std::string text() const;       // "1 byte past the end of guarded block 3 (4096 bytes)"
};

// Wraps the allocator that was registered for the CPU. Installed once and for good: a block may outlive any scope, and
// oneDNN frees through whatever allocator is registered at that time. Blocks it does not know go to the wrapped one.
class TrackedAllocator final : public c10::Allocator {
 public:
  static constexpr std::int64_t kBandBytes = 256;

  // Installs on first use. Call before the objects to be counted are made.
  static TrackedAllocator& instance();

  AllocationTotals totals() const;

  // While guarding, every new block lies between two patterned bands and starts filled with 0xff (NaN, -1), and a freed
  // block is filled with 0xff before it goes back; or between two pages of its own. start_guarding clears earlier
  // violations.
  void start_guarding(Guard guard = Guard::kBands);
  void stop_guarding();
  bool guarding() const { return guarding_.load(); }
  // Checks the bands of all live guarded blocks; returns these findings and those made when blocks were freed.
  std::vector<GuardViolation> violations();

  // Highest live_bytes between open_peak and close_peak; up to kPeakMeters may be open. Throws kInternal beyond that.
  static constexpr int kPeakMeters = 8;
  int open_peak();
  std::int64_t peak(int meter) const;
  void close_peak(int meter);

  // From now on an allocation that would bring live_bytes above this is refused: Error(kOutOfMemory), whichever thread
  // asks. 0: no limit. So running out of memory is the same on every machine.
  void limit_live_bytes(std::int64_t bytes) { most_live_bytes_ = bytes; }

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;

 private:
  struct Block {
    char* wrapped = nullptr;  // what the wrapped allocator gave
    std::int64_t bytes = 0;
    std::int64_t number = -1;                                       // guarded blocks only
    std::shared_ptr<kernels::simt::GuardedMemory> pages = nullptr;  // Guard::kPages only
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<const void*, Block> blocks;
  };

  TrackedAllocator();
  static void release(void* data);
  void free_block(void* data);
  c10::DataPtr track(char* data, Block block);
  void check_bands(const Block& block, std::vector<GuardViolation>& found) const;
  Shard& shard_of(const void* data);

  c10::Allocator* wrapped_;
  std::array<Shard, 16> shards_;
  std::atomic<std::int64_t> allocations_{0}, allocated_bytes_{0}, frees_{0}, live_bytes_{0};
  std::array<std::atomic<std::int64_t>, kPeakMeters> peaks_{};
  std::atomic<std::uint32_t> open_peaks_{0};
  std::atomic<std::int64_t> most_live_bytes_{0};
  std::atomic<bool> guarding_{false};
  std::atomic<Guard> guard_{Guard::kBands};
  std::mutex pages_mutex_;  // guarded pages are made and given back one at a time
  std::atomic<std::int64_t> next_number_{0};
  std::mutex violations_mutex_;
  std::vector<GuardViolation> violations_;
};

// Guards every CPU allocation made while it lives. One at a time in a process.
class GuardScope {
 public:
  explicit GuardScope(Guard guard = Guard::kBands) { TrackedAllocator::instance().start_guarding(guard); }
  ~GuardScope() { TrackedAllocator::instance().stop_guarding(); }
  GuardScope(const GuardScope&) = delete;
  GuardScope& operator=(const GuardScope&) = delete;
  std::vector<GuardViolation> violations() { return TrackedAllocator::instance().violations(); }
};

}  // namespace twinbench
