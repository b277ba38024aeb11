// A device timeline sampled by a process of its own, so that this one keeps a single thread, may fork, and times
// undisturbed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

namespace twinbench {

struct SampledTimeline {
  nlohmann::json
      samples;         // as DeviceTimeline::to_json(), its seconds counted from the start; null where there are none
  std::string reason;  // why samples is null; empty otherwise
};

// Samples from construction to stop(). A management library that hangs or crashes does so in the other process. That
// process runs at low priority, ignores interrupts of the terminal, and ends with this one.
class TimelineProcess {
 public:
  explicit TimelineProcess(const std::string& pci_bus_id = "", double period_s = 0.25);
  ~TimelineProcess();  // kills what still runs
  TimelineProcess(const TimelineProcess&) = delete;
  TimelineProcess& operator=(const TimelineProcess&) = delete;

  // Takes a last sample and hands all over; waits no longer than patience_s for an answer.
  SampledTimeline stop(double patience_s = 5);
  double seconds() const;  // since the start

 private:
  [[noreturn]] void sample(const std::string& pci_bus_id, double period_s, int parent);
  void bury();

  std::chrono::steady_clock::time_point started_;
  pid_t process_ = -1;
  int socket_ = -1;  // a byte asks for the text
  std::string failure_;
};

}  // namespace twinbench
