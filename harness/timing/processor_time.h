// Processor time, which other load on the machine does not stretch.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace twinbench {

// Asked of the kernel itself: the C library's clock functions can be replaced.
inline double seconds_of_clock(clockid_t clock) {
  timespec time{};
  syscall(SYS_clock_gettime, clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Of the calling thread, and of this process with all its threads.
inline double thread_seconds() { return seconds_of_clock(CLOCK_THREAD_CPUTIME_ID); }
inline double processor_seconds() { return seconds_of_clock(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace twinbench
