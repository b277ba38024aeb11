// Whether time is worked or waited away, and whether the clock that measures it tells the truth.
#pragma once

#include <functional>
#include <string>

#include "harness/timing/clock.h"

namespace twinbench {

// Empty, or at how many moments of the runs no thread of this process worked, waited for a processor or for a disk: it
// slept. Other load on the machine does not matter, for who waits for a processor does not sleep, and neither does who
// waits for a thread that works. A sleep below a quarter of the time is not told from the gaps between threads.
std::string slept(const std::function<void()>& run);

// Reads the kernel's raw clock beside the one that measures: from construction to broken() both must tell the same.
class ClockWatch {
 public:
  explicit ClockWatch(Clock& clock);
  std::string broken();  // empty, or by how much they differ

 private:
  Clock& clock_;
  std::int64_t started_, raw_started_;
};

}  // namespace twinbench
