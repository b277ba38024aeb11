// Whether time is worked or waited away, and whether the clock that measures it tells the truth.
#pragma once

#include <functional>
#include <string>

#include "harness/timing/clock.h"

namespace twinbench {

// Empty, or how much of the runs' time no thread of this process worked although one gave its processor up: it slept.
// With one thread of at::parallel_for, in the median of several attempts: where others want the processor too, a thread
// that waits for its own worker looks alike now and then, and a sleep below four fifths of the time is not told from
// it.
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
