// Counting, guarding and poisoning around the registered CPU allocator.
#include "harness/memory/tracked_allocator.h"

#include <cstring>

#include "harness/memory/guard_pattern.h"
#include "harness/simt/guarded_buffer.h"
#include "src/common/error.h"

namespace twinbench {

std::string GuardViolation::text() const {
  return std::to_string(distance + 1) + (distance == 0 ? " byte " : " bytes ") +
         (before ? "before the start of" : "past the end of") + " guarded block " + std::to_string(block_number) +
         " (" + std::to_string(block_bytes) + " bytes) was overwritten";
}

TrackedAllocator& TrackedAllocator::instance() {
  // Never destroyed: tensors with static lifetime free their blocks after main().
  static TrackedAllocator* allocator = new TrackedAllocator();
  return *allocator;
}

TrackedAllocator::TrackedAllocator() : wrapped_(c10::GetAllocator(c10::DeviceType::CPU)) {
  if (!wrapped_->raw_deleter())
    throw Error(ErrorKind::kInternal, "CPU allocator", "no raw interface",
                "only allocators with raw_deleter() can be wrapped");
  c10::SetAllocator(c10::DeviceType::CPU, this, 255);
}

AllocationTotals TrackedAllocator::totals() const {
  return {allocations_.load(), allocated_bytes_.load(), frees_.load(), live_bytes_.load()};
}

TrackedAllocator::Shard& TrackedAllocator::shard_of(const void* data) {
  // Blocks are 64-byte aligned: the low six bits say nothing.
  const auto address = reinterpret_cast<std::uintptr_t>(data) >> 6;
  return shards_[(address ^ (address >> 8)) % shards_.size()];
}

c10::DataPtr TrackedAllocator::allocate(std::size_t bytes) {
  const std::int64_t most = most_live_bytes_.load(std::memory_order_relaxed);
  if (most > 0 && live_bytes_.load() + static_cast<std::int64_t>(bytes) > most)
    throw Error(ErrorKind::kOutOfMemory, "memory budget", std::to_string(bytes) + " bytes more",
                std::to_string(live_bytes_.load()) + " of " + std::to_string(most) + " bytes are held already");
  const bool guard = guarding_.load(std::memory_order_relaxed) && bytes > 0;
  if (guard && guard_.load(std::memory_order_relaxed) == Guard::kPages) {
    constexpr std::size_t kAlignment = 16, kGuardBytes = 1 << 16;
    const std::int64_t number = next_number_.fetch_add(1);
    const std::lock_guard lock(pages_mutex_);
    auto pages = std::make_shared<kernels::simt::GuardedMemory>(bytes, kAlignment,
                                                                "tensor memory " + std::to_string(number), kGuardBytes);
    char* const data = reinterpret_cast<char*>(pages->data());
    return track(data, {data, static_cast<std::int64_t>(bytes), number, std::move(pages)});
  }
  auto* const given = static_cast<char*>(wrapped_->raw_allocate(bytes + (guard ? 2 * kBandBytes : 0)));
  if (given == nullptr || bytes == 0)
    return {given, given, &TrackedAllocator::release, c10::Device(c10::DeviceType::CPU)};
  char* const data = guard ? given + kBandBytes : given;
  Block block{given, static_cast<std::int64_t>(bytes), -1};
  if (guard) {
    block.number = next_number_.fetch_add(1);
    fill_guard(given, kBandBytes);
    std::memset(data, 0xff, bytes);
    fill_guard(data + bytes, kBandBytes);
  }
  return track(data, block);
}

c10::DataPtr TrackedAllocator::track(char* data, Block block) {
  const std::int64_t bytes = block.bytes;
  {
    Shard& shard = shard_of(data);
    const std::lock_guard lock(shard.mutex);
    shard.blocks[data] = std::move(block);
  }
  allocations_.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const std::int64_t live = live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const std::uint32_t open = open_peaks_.load(std::memory_order_relaxed);
  for (int meter = 0; open >> meter; ++meter) {
    std::int64_t seen = peaks_[meter].load(std::memory_order_relaxed);
    while (live > seen && !peaks_[meter].compare_exchange_weak(seen, live, std::memory_order_relaxed)) {
    }
  }
  return {data, data, &TrackedAllocator::release, c10::Device(c10::DeviceType::CPU)};
}

void TrackedAllocator::release(void* data) { instance().free_block(data); }

void TrackedAllocator::free_block(void* data) {
  if (data == nullptr) return;
  Block block;
  {
    Shard& shard = shard_of(data);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.blocks.find(data);
    if (found != shard.blocks.end()) {
      block = found->second;
      shard.blocks.erase(found);
    }
  }
  if (block.wrapped == nullptr) {  // older than this wrapper
    wrapped_->raw_deallocate(data);
    return;
  }
  if (block.number >= 0) {
    std::vector<GuardViolation> found;
    check_bands(block, found);
    if (!found.empty()) {
      const std::lock_guard lock(violations_mutex_);
      violations_.insert(violations_.end(), found.begin(), found.end());
    }
    if (!block.pages) std::memset(data, 0xff, static_cast<std::size_t>(block.bytes));
  }
  frees_.fetch_add(1, std::memory_order_relaxed);
  live_bytes_.fetch_sub(block.bytes, std::memory_order_relaxed);
  if (block.pages) {
    const std::lock_guard lock(pages_mutex_);
    block.pages.reset();
    return;
  }
  wrapped_->raw_deallocate(block.wrapped);
}

void TrackedAllocator::check_bands(const Block& block, std::vector<GuardViolation>& found) const {
  if (block.pages) {  // what a kernel did there is its launch's finding already
    if (!block.pages->slack_is_intact()) found.push_back({block.bytes, block.number, true, 0});
    return;
  }
  const std::int64_t before = last_broken(block.wrapped, kBandBytes);
  if (before >= 0) found.push_back({block.bytes, block.number, true, kBandBytes - 1 - before});
  const std::int64_t after = first_broken(block.wrapped + kBandBytes + block.bytes, kBandBytes);
  if (after >= 0) found.push_back({block.bytes, block.number, false, after});
}

void TrackedAllocator::start_guarding(Guard guard) {
  if (guarding_.exchange(true))
    throw Error(ErrorKind::kInternal, "guard scope", "already open", "one GuardScope at a time in a process");
  const std::lock_guard lock(violations_mutex_);
  violations_.clear();
  next_number_ = 0;
  guard_ = guard;
}

void TrackedAllocator::stop_guarding() { guarding_ = false; }

std::vector<GuardViolation> TrackedAllocator::violations() {
  std::vector<GuardViolation> found;
  {
    const std::lock_guard lock(violations_mutex_);
    found = violations_;
  }
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    for (const auto& [data, block] : shard.blocks)
      if (block.number >= 0) check_bands(block, found);
  }
  return found;
}

int TrackedAllocator::open_peak() {
  std::uint32_t open = open_peaks_.load();
  for (;;) {
    int meter = 0;
    while (meter < kPeakMeters && (open >> meter & 1u)) ++meter;
    if (meter == kPeakMeters)
      throw Error(ErrorKind::kInternal, "peak meters", std::to_string(kPeakMeters),
                  "too many counter scopes are open at once");
    peaks_[meter] = live_bytes_.load();
    if (open_peaks_.compare_exchange_weak(open, open | (1u << meter))) return meter;
  }
}

std::int64_t TrackedAllocator::peak(int meter) const { return peaks_[meter].load(); }

void TrackedAllocator::close_peak(int meter) { open_peaks_.fetch_and(~(1u << meter)); }

c10::DeleterFnPtr TrackedAllocator::raw_deleter() const { return &TrackedAllocator::release; }

void TrackedAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

}  // namespace twinbench
