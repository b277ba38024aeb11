// Interrupts this process very often while it lives, so that pieces of parallel work overlap on one core too.
#pragma once

#include <signal.h>
#include <time.h>

namespace twinbench {

// Every 50 us the thread that a signal finds lets go of its processor in the middle of what it does: another one then
// works on its own piece, and whoever shares memory with it has a wrong answer. Short pieces, which one thread ends
// before another has begun, would never show that.
class Interruptions {
 public:
  Interruptions();
  ~Interruptions();
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  timer_t timer_{};
  struct sigaction before_ {};
};

}  // namespace twinbench
