// One timed sample on a device: what happens in which order, read on both clocks.
#pragma once

#include <functional>
#include <optional>

#include "harness/device/device_timer.h"
#include "harness/timing/clock.h"

namespace twinbench {

struct SamplePlan {
  bool flush = false;  // before the timed window, on the same stream
  bool hold = false;   // the stream waits until everything is queued: host time does not show between the marks
};

struct DeviceSample {
  double span_s = 0;               // device clock, mark to mark
  double wall_s = 0;               // host clock, first launch to idle device; with hold it includes the waiting
  std::optional<double> clock_hz;  // of the multiprocessors
  bool hold_expired = false;
};

// flush, synchronise, host clock, hold, mark, body, mark, release, synchronise, host clock. The stream is released also
// where body throws.
DeviceSample take_device_sample(DeviceTimer& device, Clock& host, const std::function<void()>& body,
                                const SamplePlan& plan);

}  // namespace twinbench
