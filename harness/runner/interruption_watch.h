// Ctrl-C and its like, noted in place of ending the process: what was measured is then kept.
#pragma once

#include <signal.h>

namespace twinbench {

constexpr int kInterruptions[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};

// While one lives, these signals are noted. One that is around others makes of theirs one span: what was noted between
// two runs of jobs, or before the first, holds for those that follow. The handlers before are restored at the end.
class InterruptionWatch {
 public:
  InterruptionWatch();
  ~InterruptionWatch();
  InterruptionWatch(const InterruptionWatch&) = delete;
  InterruptionWatch& operator=(const InterruptionWatch&) = delete;

 private:
  struct sigaction before_[sizeof kInterruptions / sizeof *kInterruptions] = {};
};

// The signal that was noted since the outermost watch began; 0: none.
int interruption();
inline bool interrupted() { return interruption() != 0; }

// While a job runs in this process, which nothing but the end of the process ends: that comes a second after the
// signal.
class JobIsHere {
 public:
  JobIsHere();
  ~JobIsHere();
  JobIsHere(const JobIsHere&) = delete;
  JobIsHere& operator=(const JobIsHere&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace twinbench
