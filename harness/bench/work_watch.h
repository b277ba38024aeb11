// Whether time is worked or waited away, and whether the clock that measures it tells the truth.
#pragma once

#include <functional>
#include <string>

#include "harness/timing/clock.h"

namespace twinbench {

// Empty, or how much of the runs' time no thread of this process worked nor waited for a processor: somebody slept.
// Other work on the machine makes a thread wait for a processor, which the scheduler counts apart. One thread of
// at::parallel_for meanwhile; in the best of three attempts.
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
