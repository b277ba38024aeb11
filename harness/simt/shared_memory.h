// Shared memory of the host run: every element remembers who touched it, so races and unwritten reads are found.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
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
  std::uint8_t block = 0;  // of a cluster; 0 where a block has its shared memory for itself
};

// One shared array, or the dynamic shared memory, of the block that runs now. Kept from block to block.
//
// What every access so far has touched together has one history: a piece of up to 16 bytes, divided when an access
// meets a part of it.
struct SharedRegion {
  static constexpr int kLine = 16;
  struct Granule {
    Touch write;
    std::array<Touch, 2> reads;  // the last readers, of different warps where there were several
  };

  std::string name;
  std::vector<unsigned char> bytes;
  int granule;                        // bytes that are judged as one at least: the smallest element, 1 or 2
  std::vector<Granule> granules;      // the first one of a piece has its history
  std::vector<std::uint8_t> divided;  // bytes of the pieces of each line of 16

  SharedRegion(std::string name, std::size_t size, int granule = 2);
  // From now on single bytes are judged, each with the history of its pair.
  void judge_bytes();
  // use(granule) of every piece of an access within the region, in ascending order.
  template <class Use>
  void each_piece(std::int64_t offset, std::int64_t size, Use use) {
    const std::int64_t smallest = granule, end = (offset + size + smallest - 1) & -smallest;
    for (std::int64_t at = offset & -smallest; at < end;) {
      const std::int64_t line = at / kLine, end_here = end < (line + 1) * kLine ? end : (line + 1) * kLine;
      if (((at | end_here) & (divided[static_cast<std::size_t>(line)] - 1)) != 0) divide(line, at | end_here);
      use(granules[static_cast<std::size_t>(at / smallest)]);
      at += divided[static_cast<std::size_t>(line)];
    }
  }

 private:
  // Into pieces of the largest power of two that divides `bounds`.
  void divide(std::int64_t line, std::int64_t bounds);
};

// Check and record an access of `size` bytes at `offset`, then move the bytes; false if it is out of bounds (a
// finding). Where they return to is the access's place in the kernel, so what calls them is always inlined.
bool read_shared(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset, void* value,
                 int size);
bool write_shared(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset, const void* value,
                  int size);
// An atomic update in two steps, between which no other thread runs.
bool begin_shared_update(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset, void* old,
                         int size);
void finish_shared_update(SharedRegion& region, std::int64_t offset, const void* changed, int size);

#define TWINBENCH_ALWAYS_INLINE [[gnu::always_inline]] inline

// What `tile[i]` gives: reads and writes go through the checks. Convert it to the element type; never keep it in an
// auto.
template <class T>
class SharedReference {
 public:
  SharedReference(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset)
      : executor_(executor), thread_(thread), region_(region), offset_(offset) {}
  SharedReference(const SharedReference&) = delete;

  TWINBENCH_ALWAYS_INLINE operator T() const { return load(); }  // NOLINT(google-explicit-constructor): a T& to readers
  TWINBENCH_ALWAYS_INLINE const SharedReference& operator=(T value) const { return store(value); }
  TWINBENCH_ALWAYS_INLINE const SharedReference& operator=(const SharedReference& other) const {
    return store(other.load());
  }
  TWINBENCH_ALWAYS_INLINE const SharedReference& operator+=(T value) const {
    return store(static_cast<T>(load() + value));
  }
  TWINBENCH_ALWAYS_INLINE const SharedReference& operator-=(T value) const {
    return store(static_cast<T>(load() - value));
  }
  TWINBENCH_ALWAYS_INLINE const SharedReference& operator*=(T value) const {
    return store(static_cast<T>(load() * value));
  }
  TWINBENCH_ALWAYS_INLINE const SharedReference& operator|=(T value) const {
    return store(static_cast<T>(load() | value));
  }

  // Reads and writes as one indivisible step; returns the old value.
  template <class Combine>
  TWINBENCH_ALWAYS_INLINE T atomic(Combine combine) const {
    T old{};
    if (!begin_shared_update(executor_, thread_, region_, offset_, &old, sizeof(T))) return T{};
    const T changed = combine(old);
    finish_shared_update(region_, offset_, &changed, sizeof(T));
    return old;
  }

 private:
  TWINBENCH_ALWAYS_INLINE T load() const {
    T value{};
    read_shared(executor_, thread_, region_, offset_, &value, sizeof(T));
    return value;
  }
  TWINBENCH_ALWAYS_INLINE const SharedReference& store(T value) const {
    write_shared(executor_, thread_, region_, offset_, &value, sizeof(T));
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
  // The same place as elements of U. Throws where it is not aligned for one.
  template <class U>
  SharedPointer<U> as() const {
    if (offset_ % static_cast<std::int64_t>(alignof(U)) != 0)
      throw std::runtime_error("an access of " + std::to_string(sizeof(U)) + " bytes at byte " +
                               std::to_string(offset_) + " of " + region_->name + " is misaligned");
    return {*executor_, *thread_, *region_, offset_};
  }
  SharedRegion& region() const { return *region_; }
  std::int64_t offset() const { return offset_; }

 private:
  Executor* executor_;
  HostThread* thread_;
  SharedRegion* region_;
  std::int64_t offset_;
};

}  // namespace twinbench::kernels::simt
