// One fiber a CUDA thread: a function with its own stack that can stop in the middle and go on later (Boost.Context).
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

namespace twinbench::kernels::simt {

struct FiberStack {
  void* lowest = nullptr;  // the page below is not accessible: overflow faults instead of corrupting a neighbour
  std::size_t bytes = 0;
  std::size_t unused = 0;  // at its upper end
};

// Not movable: a running fiber knows its own address.
class Fiber {
 public:
  using Body = void (*)(void* context);

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Prepares to run body(context), which must not let an exception out. The fiber must not be half way through another.
  void prepare(Body body, void* context);

  // From the scheduler: runs the fiber until it suspends or its body returns.
  void resume();

  // From inside the fiber: back to the scheduler.
  void suspend();

  bool started() const { return started_; }
  const FiberStack& stack() const { return stack_; }

 private:
  static void enter(boost::context::detail::transfer_t transfer);

  FiberStack stack_;
  Body body_ = nullptr;
  void* body_context_ = nullptr;
  boost::context::detail::fcontext_t self_ = nullptr;
  boost::context::detail::fcontext_t scheduler_ = nullptr;
  bool started_ = false;
  bool finished_ = true;
  // What AddressSanitizer must be told at each switch: the fake stacks, and where the scheduler's stack lies.
  void* own_fake_stack_ = nullptr;
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_lowest_ = nullptr;
  std::size_t scheduler_bytes_ = 0;
};

}  // namespace twinbench::kernels::simt
