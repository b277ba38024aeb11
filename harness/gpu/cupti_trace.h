// A CUPTI activity trace of this process, from start() to stop().
#pragma once

#include <memory>
#include <optional>

#include "harness/gpu/device_activity.h"

namespace twinbench {

// start() subscribes, enables the record kinds and opens the window; stop() flushes and adds up. One at a time in a
// process.
// Where something refuses, start() says what and the trace is off.
class CuptiTrace {
 public:
  CuptiTrace();
  ~CuptiTrace();  // stops a trace that runs
  CuptiTrace(const CuptiTrace&) = delete;
  CuptiTrace& operator=(const CuptiTrace&) = delete;

  // Nothing where tracing runs now.
  std::optional<GpuFinding> start(const TraceOptions& options);
  // Ends the window: what the host does from here on (waiting for the device) is the observer's own.
  void close_window();
  // Call when the device is idle.
  DeviceActivity stop();

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace twinbench
