// The functions that `-fsanitize=thread` puts before each access of memory, without that sanitizer: they log.
//
// Their names and meaning are GCC's and LLVM's interface to the sanitizer's runtime. Kernels' translation units are
// compiled with the option and linked without it. Where a hook returns to is the access's place in the kernel.
#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "harness/simt/counting/lane_log.h"
#include "harness/simt/counting/source_place.h"
#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {

thread_local LaneLog* current_lane_log = nullptr;

AddressRange own_stack() {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
  }
  return range_of(lowest, bytes);
}

namespace {

// Fatal on a card. On the host 16 bytes end in a fault, and fewer in nothing, so it is told before the access is made.
[[gnu::noinline, gnu::cold]] void report_misaligned(const void* site, const void* address, std::uint32_t bytes) {
  const HostThread* thread = Executor::running();
  if (thread == nullptr) return;
  // Registers and parameters of a card, which the host's compiler copies as it likes.
  static thread_local const AddressRange parameters = own_stack();
  const FiberStack& stack = thread->fiber.stack();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (parameters.holds(at) || range_of(stack.lowest, stack.bytes).holds(at)) return;
  const std::string place = place_of(site).text();
  thread->executor->add_finding(FindingKind::kMisaligned, thread->rank, -1, -1, place,
                                "thread " + std::to_string(thread->rank) + " accesses " + std::to_string(bytes) +
                                    " bytes at an address that is " +
                                    std::to_string(reinterpret_cast<std::uintptr_t>(address) % bytes) +
                                    " past a multiple of them, at " + place);
}

[[gnu::always_inline]] inline void note(const void* site, const void* address, std::uint32_t bytes, Access access) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) report_misaligned(site, address, bytes);
  if (LaneLog* log = current_lane_log) log->add_global(site, address, bytes, access);
}

// What is no aligned power of two: a card moves it in words of 4 bytes, or in single bytes.
[[gnu::noinline]] void note_in_pieces(const void* site, const void* address, std::size_t bytes, Access access) {
  if (current_lane_log == nullptr) return;
  const auto* at = static_cast<const char*>(address);
  const std::uint32_t piece = bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
  for (std::size_t i = 0; i < bytes; i += piece) note(site, at + i, piece, access);
}

}  // namespace
}  // namespace twinbench::kernels::simt

namespace simt = twinbench::kernels::simt;
using simt::Access;

#define TWINBENCH_SITE __builtin_return_address(0)
#define TWINBENCH_ACCESS_HOOKS(bytes)                                                                             \
  void __tsan_read##bytes(void* at) { simt::note(TWINBENCH_SITE, at, bytes, Access::kRead); }                     \
  void __tsan_write##bytes(void* at) { simt::note(TWINBENCH_SITE, at, bytes, Access::kWrite); }                   \
  void __tsan_unaligned_read##bytes(void* at) { simt::note_in_pieces(TWINBENCH_SITE, at, bytes, Access::kRead); } \
  void __tsan_unaligned_write##bytes(void* at) { simt::note_in_pieces(TWINBENCH_SITE, at, bytes, Access::kWrite); }

// Atomic operations: one access each, then what the compiler would have written in its place.
#define TWINBENCH_FETCH_HOOK(bits, name, operation)                                                           \
  std::uint##bits##_t __tsan_atomic##bits##_fetch_##name(volatile void* at, std::uint##bits##_t value, int) { \
    simt::note(TWINBENCH_SITE, const_cast<const void*>(at), bits / 8, Access::kAtomic);                       \
    return operation(static_cast<volatile std::uint##bits##_t*>(at), value, __ATOMIC_SEQ_CST);                \
  }
#define TWINBENCH_COMPARE_HOOK(bits, name)                                                                             \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile void* at, void* expected, std::uint##bits##_t value, int, \
                                                    int) {                                                             \
    simt::note(TWINBENCH_SITE, const_cast<const void*>(at), bits / 8, Access::kAtomic);                                \
    return __atomic_compare_exchange_n(static_cast<volatile std::uint##bits##_t*>(at),                                 \
                                       static_cast<std::uint##bits##_t*>(expected), value, false, __ATOMIC_SEQ_CST,    \
                                       __ATOMIC_SEQ_CST);                                                              \
  }
#define TWINBENCH_ATOMIC_HOOKS(bits)                                                                      \
  std::uint##bits##_t __tsan_atomic##bits##_load(const volatile void* at, int) {                          \
    simt::note(TWINBENCH_SITE, const_cast<const void*>(at), bits / 8, Access::kAtomic);                   \
    return __atomic_load_n(static_cast<const volatile std::uint##bits##_t*>(at), __ATOMIC_SEQ_CST);       \
  }                                                                                                       \
  void __tsan_atomic##bits##_store(volatile void* at, std::uint##bits##_t value, int) {                   \
    simt::note(TWINBENCH_SITE, const_cast<const void*>(at), bits / 8, Access::kAtomic);                   \
    __atomic_store_n(static_cast<volatile std::uint##bits##_t*>(at), value, __ATOMIC_SEQ_CST);            \
  }                                                                                                       \
  std::uint##bits##_t __tsan_atomic##bits##_exchange(volatile void* at, std::uint##bits##_t value, int) { \
    simt::note(TWINBENCH_SITE, const_cast<const void*>(at), bits / 8, Access::kAtomic);                   \
    return __atomic_exchange_n(static_cast<volatile std::uint##bits##_t*>(at), value, __ATOMIC_SEQ_CST);  \
  }                                                                                                       \
  TWINBENCH_FETCH_HOOK(bits, add, __atomic_fetch_add)                                                     \
  TWINBENCH_FETCH_HOOK(bits, sub, __atomic_fetch_sub)                                                     \
  TWINBENCH_FETCH_HOOK(bits, and, __atomic_fetch_and)                                                     \
  TWINBENCH_FETCH_HOOK(bits, or, __atomic_fetch_or)                                                       \
  TWINBENCH_FETCH_HOOK(bits, xor, __atomic_fetch_xor)                                                     \
  TWINBENCH_FETCH_HOOK(bits, nand, __atomic_fetch_nand)                                                   \
  TWINBENCH_COMPARE_HOOK(bits, strong)                                                                    \
  TWINBENCH_COMPARE_HOOK(bits, weak)

extern "C" {
TWINBENCH_ACCESS_HOOKS(1)
TWINBENCH_ACCESS_HOOKS(2)
TWINBENCH_ACCESS_HOOKS(4)
TWINBENCH_ACCESS_HOOKS(8)
TWINBENCH_ACCESS_HOOKS(16)
void __tsan_read_range(void* at, std::size_t bytes) { simt::note_in_pieces(TWINBENCH_SITE, at, bytes, Access::kRead); }
void __tsan_write_range(void* at, std::size_t bytes) {
  simt::note_in_pieces(TWINBENCH_SITE, at, bytes, Access::kWrite);
}
TWINBENCH_ATOMIC_HOOKS(8)
TWINBENCH_ATOMIC_HOOKS(16)
TWINBENCH_ATOMIC_HOOKS(32)
TWINBENCH_ATOMIC_HOOKS(64)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
