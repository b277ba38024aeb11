// Fiber switches, the pool of stacks, and what AddressSanitizer has to know about both.
#include "harness/simt/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace twinbench::kernels::simt {
namespace {

namespace context = boost::context::detail;

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackBytes = 512 * 1024;  // instrumented frames are several times larger
void before_switch(void** fake_stack, const void* lowest, std::size_t bytes) {
  __sanitizer_start_switch_fiber(fake_stack, lowest, bytes);
}
void after_switch(void* fake_stack, const void** lowest, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, lowest, bytes);
}
void clean(const FiberStack& stack) { __asan_unpoison_memory_region(stack.lowest, stack.bytes); }
#else
constexpr std::size_t kStackBytes = 128 * 1024;  // virtual; only touched pages cost memory
void before_switch(void**, const void*, std::size_t) {}
void after_switch(void*, const void**, std::size_t*) {}
void clean(const FiberStack&) {}
#endif

// Tops of stacks lie a whole number of pages apart: without a distance of its own for each, the frames of all fibers of
// a block would share a few sets of the cache. An odd number of lines, within a page.
constexpr std::size_t kDistance = 5 * 64, kDistances = 12;

// Stacks that finished fibers gave back. Mapping one costs more than running a small kernel thread.
class StackPool {
 public:
  ~StackPool() {
    for (const FiberStack& stack : free_) unmap(stack);
  }

  FiberStack take() {
    if (!free_.empty()) {
      const FiberStack stack = free_.back();
      free_.pop_back();
      return stack;
    }
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* mapping = mmap(nullptr, page + kStackBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED) throw std::bad_alloc();
    mprotect(mapping, page, PROT_NONE);
    return {static_cast<char*>(mapping) + page, kStackBytes, mapped_++ % kDistances * kDistance};
  }

  void give(const FiberStack& stack) { free_.push_back(stack); }

 private:
  static void unmap(const FiberStack& stack) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    munmap(static_cast<char*>(stack.lowest) - page, page + stack.bytes);
  }

  std::vector<FiberStack> free_;
  std::size_t mapped_ = 0;
};

StackPool& stack_pool() {
  thread_local StackPool pool;
  return pool;
}

}  // namespace

Fiber::~Fiber() {
  if (stack_.lowest != nullptr) stack_pool().give(stack_);
}

void Fiber::prepare(Body body, void* body_context) {
  if (stack_.lowest == nullptr) stack_ = stack_pool().take();
  clean(stack_);
  body_ = body;
  body_context_ = body_context;
  started_ = finished_ = false;
  const std::size_t bytes = stack_.bytes - stack_.unused;
  self_ = context::make_fcontext(static_cast<char*>(stack_.lowest) + bytes, bytes, &Fiber::enter);
}

void Fiber::resume() {
  started_ = true;
  before_switch(&scheduler_fake_stack_, stack_.lowest, stack_.bytes);
  const context::transfer_t back = context::jump_fcontext(self_, this);
  after_switch(scheduler_fake_stack_, nullptr, nullptr);
  self_ = back.fctx;
}

void Fiber::suspend() {
  // A null pointer tells the sanitizer that this fiber never comes back.
  before_switch(finished_ ? nullptr : &own_fake_stack_, scheduler_lowest_, scheduler_bytes_);
  const context::transfer_t resumed = context::jump_fcontext(scheduler_, nullptr);
  after_switch(own_fake_stack_, &scheduler_lowest_, &scheduler_bytes_);
  scheduler_ = resumed.fctx;
}

void Fiber::enter(context::transfer_t transfer) {
  Fiber& fiber = *static_cast<Fiber*>(transfer.data);
  after_switch(nullptr, &fiber.scheduler_lowest_, &fiber.scheduler_bytes_);
  fiber.scheduler_ = transfer.fctx;
  fiber.body_(fiber.body_context_);
  fiber.finished_ = true;
  fiber.suspend();
}

}  // namespace twinbench::kernels::simt
