// The block context of the host run: one object a CUDA thread, the same members as DeviceBlock.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <typeinfo>

#include "harness/simt/async_copies.h"
#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {

class HostBlock {
 public:
  HostBlock(Executor& executor, HostThread& thread) : executor_(executor), thread_(thread) {}

  Index3 thread() const { return thread_.position; }
  Index3 index() const { return executor_.block_index(); }
  Index3 size() const { return executor_.block_size(); }
  // As an Index3; which of its members a kernel reads is noted.
  struct GridExtent {
    Executor& executor;
    int axis;
    operator unsigned() const { return executor.grid_extent(axis); }  // NOLINT(google-explicit-constructor)
  };
  struct Grid {
    GridExtent x, y, z;
  };
  Grid grid() const { return {{executor_, 0}, {executor_, 1}, {executor_, 2}}; }

  // The default arguments record the place of the call.
  void barrier(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    executor_.wait_at_barrier(thread_, {file, line});
  }
  void warp_barrier(std::uint32_t mask = kFullMask, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    operate(WarpOperation::kBarrier, 0, 0, mask, {file, line});
  }
  // Each thread runs on the same processor, so memory is in order; what the fence orders between blocks is judged where
  // accesses are counted.
  void fence() { executor_.fence(thread_); }

  template <class T>
  T shuffle_down(T value, unsigned delta, std::uint32_t mask = kFullMask, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
    return operate(WarpOperation::kShuffleDown, value, static_cast<int>(delta), mask, {file, line});
  }
  template <class T>
  T shuffle_xor(T value, int lanes, std::uint32_t mask = kFullMask, const char* file = __builtin_FILE(),
                int line = __builtin_LINE()) {
    return operate(WarpOperation::kShuffleXor, value, lanes, mask, {file, line});
  }
  template <class T>
  T shuffle_index(T value, int lane, std::uint32_t mask = kFullMask, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
    return operate(WarpOperation::kShuffleIndex, value, lane, mask, {file, line});
  }
  std::uint32_t ballot(bool predicate, std::uint32_t mask = kFullMask, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
    return operate(WarpOperation::kBallot, static_cast<std::uint32_t>(predicate), 0, mask, {file, line});
  }

  template <class T, int kCount, int kSlot>
  SharedPointer<T> shared_array() {
    return {executor_, thread_, executor_.static_region(typeid(T), kCount, kSlot, sizeof(T)), 0};
  }
  template <class T>
  SharedPointer<T> dynamic_shared(int byte_offset) {
    if constexpr (sizeof(T) == 1) executor_.dynamic_region().judge_bytes();
    return {executor_, thread_, executor_.dynamic_region(), byte_offset};
  }

  // An operation of all 32 lanes of a warp.
  template <class Lane>
  void warp_collective(WarpOperation operation, Lane& own, void (*apply)(void* const*), Place place) {
    const WarpCollective collective{&own, apply};
    const WarpCollective* const address = &collective;
    WarpRequest request{operation, kFullMask, 0, sizeof address, {}};
    std::memcpy(request.value, &address, sizeof address);
    executor_.wait_for_warp(thread_, request, place);
  }
  AsyncCopies& async_copies() { return async_copies_; }
  Executor& executor() { return executor_; }
  HostThread& host_thread() { return thread_; }

  // Global memory: the run is sequential, so a plain update is atomic.
  template <class T>
  TWINBENCH_ALWAYS_INLINE T atomic_add(T* where, T value) {
    return update(where, [value](T old) { return static_cast<T>(old + value); });
  }
  template <class T>
  TWINBENCH_ALWAYS_INLINE T atomic_max(T* where, T value) {
    return update(where, [value](T old) { return value > old ? value : old; });
  }
  template <class T>
  TWINBENCH_ALWAYS_INLINE T atomic_add(SharedPointer<T> where, T value) {
    return (*where).atomic([value](T old) { return static_cast<T>(old + value); });
  }
  template <class T>
  TWINBENCH_ALWAYS_INLINE T atomic_max(SharedPointer<T> where, T value) {
    return (*where).atomic([value](T old) { return value > old ? value : old; });
  }

  // *where = combine(*where), for the atomics of kernels/common/simt_atomic.h; returns the old value.
  template <class T, class Combine>
  TWINBENCH_ALWAYS_INLINE T atomic_update(T* where, Combine combine) {
    return update(where, combine);
  }
  template <class T, class Combine>
  TWINBENCH_ALWAYS_INLINE T atomic_update(SharedPointer<T> where, Combine combine) {
    return (*where).atomic(combine);
  }

 private:
  // A counted atomic access of global memory, done out of line: no access of the kernel's own is seen beside it.
  template <class T, class Combine>
  TWINBENCH_ALWAYS_INLINE T update(T* where, Combine combine) {
    T old;
    executor_.begin_global_update(where, &old, sizeof(T));
    const T changed = combine(old);
    executor_.finish_global_update(where, &changed, sizeof(T));
    return old;
  }
  template <class T>
  T operate(WarpOperation operation, T value, int argument, std::uint32_t mask, Place place) {
    static_assert(std::is_arithmetic_v<T>, "shuffles move arithmetic types, as the intrinsics do");
    WarpRequest request{operation, mask, argument, sizeof(T), {}};
    std::memcpy(request.value, &value, sizeof(T));
    executor_.wait_for_warp(thread_, request, place);
    T result;
    std::memcpy(&result, thread_.result, sizeof(T));
    return result;
  }

  Executor& executor_;
  HostThread& thread_;
  AsyncCopies async_copies_{executor_, thread_};
};

}  // namespace twinbench::kernels::simt
