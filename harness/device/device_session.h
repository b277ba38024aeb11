// What a session on a device must know before it times anything: the timer's cost, the clock, and two self-tests.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/device/device_timer.h"
#include "harness/timing/clock.h"

namespace twinbench {

// Does the blocking kernel keep host time out of the marked window? The host dawdles between the marks on purpose.
struct HoldTest {
  bool works = false;
  double dawdled_s = 0, held_span_s = 0;
  std::string reason;  // why not
};

// Does the flush flush, and does it stay outside the marked window?
struct FlushTest {
  bool works = false;
  double resident_s = 0, flushed_s = 0;  // the same read, without and with a flush before it: medians
  double leak_s = 0;                     // what a flush adds to an empty window
  std::string reason;
};

struct DeviceSession {
  double empty_span_s = 0, empty_wall_s = 0;  // an empty sample on both clocks: medians of `empty_samples`
  std::size_t empty_samples = 0;
  std::optional<double> clock_hz;  // reference of the throttle rule: median under load
  HoldTest hold;
  FlushTest flush;
};

// Warms the device up, then measures: about a second.
DeviceSession open_device_session(DeviceTimer& device, Clock& host, double warm_up_s = 0.3);

// session.device of a record, and back.
nlohmann::json to_json(const DeviceSession& session);
DeviceSession device_session_from(const nlohmann::json& row);

}  // namespace twinbench
