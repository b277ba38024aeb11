// In front of the allocation functions, mmap and OpenMP: a count where somebody counts, then the call itself.
#include "harness/counters/process_calls.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "src/common/error.h"
#include "src/common/refused_thread.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TWINBENCH_COUNTS_CALLS 0
#else
#define TWINBENCH_COUNTS_CALLS 1
#endif

namespace twinbench {
namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> heap{0}, maps{0}, regions{0}, threads{0};

[[maybe_unused]] inline void count(std::atomic<std::int64_t>& calls) {
  if (counting.load(std::memory_order_relaxed)) calls.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

ProcessCallScope::ProcessCallScope() {
  heap = maps = regions = threads = 0;
  if (counting.exchange(true))
    throw Error(ErrorKind::kInternal, "process calls", "already counted", "one scope at a time");
}

ProcessCallScope::~ProcessCallScope() { counting = false; }

std::map<std::string, std::int64_t> ProcessCallScope::counts() const {
  const std::int64_t of_heap = heap, of_maps = maps, of_regions = regions,
                     of_threads = threads;  // before the map below takes memory
  std::map<std::string, std::int64_t> counts;
  for (const auto& [name, calls] :
       {std::pair{"heap", of_heap}, {"mmap", of_maps}, {"parallel", of_regions}, {"threads", of_threads}})
    if (calls != 0) counts[name] = calls;
  return counts;
}

bool ProcessCallScope::counts_here() { return TWINBENCH_COUNTS_CALLS != 0; }

}  // namespace twinbench

#if TWINBENCH_COUNTS_CALLS

// The names and types are those of the C library and of libgomp.
extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  twinbench::count(twinbench::heap);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) {
  twinbench::count(twinbench::heap);
  return __libc_calloc(number, bytes);
}
void* realloc(void* block, std::size_t bytes) {
  twinbench::count(twinbench::heap);
  return __libc_realloc(block, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  twinbench::count(twinbench::heap);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  twinbench::count(twinbench::heap);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  twinbench::count(twinbench::heap);
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* const given = __libc_memalign(alignment, bytes);
  if (given == nullptr) return ENOMEM;
  *block = given;
  return 0;
}

void* valloc(std::size_t bytes) {
  twinbench::count(twinbench::heap);
  return __libc_memalign(static_cast<std::size_t>(getpagesize()), bytes);
}
void* pvalloc(std::size_t bytes) {
  twinbench::count(twinbench::heap);
  const auto page = static_cast<std::size_t>(getpagesize());
  const std::size_t more = (page - bytes % page) % page;
  return __libc_memalign(page, bytes + more < bytes ? bytes : bytes + more);  // too much is refused as it is
}
void* reallocarray(void* block, std::size_t number, std::size_t bytes) {
  twinbench::count(twinbench::heap);
  std::size_t all = 0;
  if (!__builtin_mul_overflow(number, bytes, &all)) return __libc_realloc(block, all);
  errno = ENOMEM;
  return nullptr;
}

void* mmap(void* where, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  twinbench::count(twinbench::maps);
  return reinterpret_cast<void*>(syscall(SYS_mmap, where, bytes, protection, flags, file, offset));
}
void* mmap64(void* where, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  return mmap(where, bytes, protection, flags, file, offset);
}

void* mremap(void* old, std::size_t old_bytes, std::size_t new_bytes, int flags, ...) noexcept {
  twinbench::count(twinbench::maps);
  va_list rest;
  va_start(rest, flags);
  void* const where = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  return reinterpret_cast<void*>(syscall(SYS_mremap, old, old_bytes, new_bytes, flags, where));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*), void* argument) noexcept {
  using Function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_create"));
  twinbench::count(twinbench::threads);
  const int error = next(thread, attributes, work, argument);
  if (error != 0)
    if (const auto told = twinbench::when_thread_is_refused.load()) told(error);
  return error;
}

void GOMP_parallel(void (*work)(void*), void* data, unsigned threads, unsigned flags) {
  using Function = void (*)(void (*)(void*), void*, unsigned, unsigned);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "GOMP_parallel"));
  twinbench::count(twinbench::regions);
  next(work, data, threads, flags);
}

}  // extern "C"

#endif
