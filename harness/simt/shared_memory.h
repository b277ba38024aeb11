// Shared memory of the host run: every element remembers who touched it, so races and unwritten reads are found.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

class Executor;
struct HostThread;

enum class Access { kRead, kWrite, kAtomic };

// One touch of a granule. `epoch` counts the barriers of the whole launch; `clock` is the toucher's own warp clock
// then.
struct Touch {
  std::uint32_t epoch = 0;  // 0: never
  std::uint32_t clock = 0;
  std::uint16_t thread = 0;
  bool atomic = false;
};

// One shared array, or the dynamic shared memory, of the block that runs now. Kept from block to block.
struct SharedRegion {
  static constexpr int kGranule = 2;  // bytes; the smallest element allowed
  struct Granule {
    Touch write;
    std::array<Touch, 2> reads;  // the last readers, of different warps where there were several
  };

  std::string name;
  std::vector<unsigned char> bytes;
  std::vector<Granule> granules;

  SharedRegion(std::string name, std::size_t size);
};

// Checks and records the access of `size` bytes at `offset`; false if it is out of bounds (recorded as a finding).
bool touch_shared(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset, int size,
                  Access access);

// What `tile[i]` gives: reads and writes go through the checks. Convert it to the element type; never keep it in an
// auto.
template <class T>
class SharedReference {
 public:
  SharedReference(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset)
      : executor_(executor), thread_(thread), region_(region), offset_(offset) {}
  SharedReference(const SharedReference&) = delete;

  operator T() const { return load(Access::kRead); }  // NOLINT(google-explicit-constructor): stands in for a T&
  const SharedReference& operator=(T value) const { return store(value, Access::kWrite); }
  const SharedReference& operator=(const SharedReference& other) const {
    return store(other.load(Access::kRead), Access::kWrite);
  }
  const SharedReference& operator+=(T value) const { return *this = static_cast<T>(T(*this) + value); }
  const SharedReference& operator-=(T value) const { return *this = static_cast<T>(T(*this) - value); }
  const SharedReference& operator*=(T value) const { return *this = static_cast<T>(T(*this) * value); }
  const SharedReference& operator|=(T value) const { return *this = static_cast<T>(T(*this) | value); }

  // Reads and writes as one indivisible step; returns the old value.
  template <class Combine>
  T atomic(Combine combine) const {
    if (!touch_shared(executor_, thread_, region_, offset_, sizeof(T), Access::kAtomic)) return T{};
    T old;
    std::memcpy(&old, region_.bytes.data() + offset_, sizeof(T));
    const T changed = combine(old);
    std::memcpy(region_.bytes.data() + offset_, &changed, sizeof(T));
    return old;
  }

 private:
  T load(Access access) const {
    T value{};
    if (touch_shared(executor_, thread_, region_, offset_, sizeof(T), access)) {
      std::memcpy(&value, region_.bytes.data() + offset_, sizeof(T));
    }
    return value;
  }
  const SharedReference& store(T value, Access access) const {
    if (touch_shared(executor_, thread_, region_, offset_, sizeof(T), access)) {
      std::memcpy(region_.bytes.data() + offset_, &value, sizeof(T));
    }
    return *this;
  }

  Executor& executor_;
  HostThread& thread_;
  SharedRegion& region_;
  std::int64_t offset_;
};

// Stands in for T* into shared memory: indexing, moving, dereferencing.
template <class T>
class SharedPointer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SharedPointer(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset)
      : executor_(&executor), thread_(&thread), region_(&region), offset_(offset) {}

  SharedReference<T> operator[](std::int64_t index) const {
    return {*executor_, *thread_, *region_, offset_ + index * static_cast<std::int64_t>(sizeof(T))};
  }
  SharedReference<T> operator*() const { return (*this)[0]; }
  SharedPointer operator+(std::int64_t count) const {
    return {*executor_, *thread_, *region_, offset_ + count * static_cast<std::int64_t>(sizeof(T))};
  }
  SharedPointer& operator+=(std::int64_t count) { return *this = *this + count; }

 private:
  Executor* executor_;
  HostThread* thread_;
  SharedRegion* region_;
  std::int64_t offset_;
};

}  // namespace twinbench::kernels::simt
