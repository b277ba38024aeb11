// Interrupts this process very often while it lives, so that pieces of parallel work overlap on one core too.
#pragma once

#include <signal.h>

namespace twinbench {

// After every 50 us of work the thread that a signal finds lets go of its processor in the middle of what it does:
// another one then works on its own piece, and whoever shares memory with it has a wrong answer. Short pieces, which
// one thread ends before another has begun, would never show that. One at a time in a process.
class Interruptions {
 public:
  Interruptions();
  ~Interruptions();
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace twinbench
