// Empty samples, the reference clock, the hold test and the flush test.
#include "harness/device/device_session.h"

#include <vector>

#include "harness/device/device_sample.h"
#include "harness/timing/statistics.h"

namespace twinbench {
namespace {

constexpr std::size_t kEmptySamples = 101, kClockSamples = 31, kFlushRounds = 15, kHoldRounds = 5;
constexpr double kDawdle = 200e-6;          // seconds: far above any launch
constexpr double kSlowerWhenFlushed = 1.3;  // by this at least
constexpr double kLargestLeak = 1e-6;       // seconds

HoldTest test_hold(DeviceTimer& device, Clock& host) {
  HoldTest test;
  std::vector<double> spans;
  bool expired = false;
  for (std::size_t round = 0; round < kHoldRounds; ++round) {
    const auto dawdle = [&] {
      const std::int64_t start = host.now();
      while (seconds_between(start, host.now()) < kDawdle) {
      }
    };
    const DeviceSample sample = take_device_sample(device, host, dawdle, {false, true});
    spans.push_back(sample.span_s);
    expired = expired || sample.hold_expired;
  }
  test.dawdled_s = kDawdle;
  test.held_span_s = median(spans);
  if (expired)
    test.reason = "it expired although nothing waited for the device";
  else if (test.held_span_s > kDawdle / 4)
    test.reason = "host time shows between the marks: launch costs would count as device time";
  test.works = test.reason.empty();
  return test;
}

FlushTest test_flush(DeviceTimer& device, Clock& host, bool hold, double empty_span_s) {
  const auto read = [&] { device.read_resident(); };
  const auto nothing = [] {};
  std::vector<double> resident, flushed, empty;
  take_device_sample(device, host, read, {false, hold});
  for (std::size_t round = 0; round < kFlushRounds; ++round) {
    flushed.push_back(take_device_sample(device, host, read, {true, hold}).span_s);
    resident.push_back(take_device_sample(device, host, read, {false, hold}).span_s);
    empty.push_back(take_device_sample(device, host, nothing, {true, hold}).span_s);
    take_device_sample(device, host, read, {false, hold});  // brings the buffer back
  }
  FlushTest test;
  test.resident_s = median(resident);
  test.flushed_s = median(flushed);
  test.leak_s = median(empty) - empty_span_s;
  if (!(test.flushed_s >= kSlowerWhenFlushed * test.resident_s))
    test.reason = "a read after the flush is not slower than one of resident lines: cold times are not cold";
  else if (test.leak_s > kLargestLeak)
    test.reason = "the flush runs into the timed window";
  test.works = test.reason.empty();
  return test;
}

}  // namespace

DeviceSession open_device_session(DeviceTimer& device, Clock& host, double warm_up_s) {
  DeviceSession session;
  const auto load = [&] {
    device.flush_cache();
    device.read_resident();
  };
  // An idle card runs at a tenth of its clock: the first readings would make every later one look fine.
  for (const std::int64_t start = host.now(); seconds_between(start, host.now()) < warm_up_s;)
    take_device_sample(device, host, load, {});
  session.hold = test_hold(device, host);
  const SamplePlan plan{false, session.hold.works};
  std::vector<double> clocks, spans, walls;
  for (std::size_t i = 0; i < kClockSamples; ++i)
    if (const auto clock = take_device_sample(device, host, load, {}).clock_hz) clocks.push_back(*clock);
  if (!clocks.empty()) session.clock_hz = median(clocks);
  for (std::size_t i = 0; i < kEmptySamples; ++i) {
    const DeviceSample sample = take_device_sample(
        device, host, [] {}, plan);
    spans.push_back(sample.span_s);
    walls.push_back(take_device_sample(device, host, [] {}, {}).wall_s);
  }
  session.empty_span_s = median(spans);
  session.empty_wall_s = median(walls);
  session.empty_samples = kEmptySamples;
  session.flush = test_flush(device, host, session.hold.works, session.empty_span_s);
  return session;
}

nlohmann::json to_json(const DeviceSession& session) {
  return {{"empty_span_s", session.empty_span_s},
          {"empty_wall_s", session.empty_wall_s},
          {"empty_samples", session.empty_samples},
          {"clock_mhz", session.clock_hz ? nlohmann::json(*session.clock_hz / 1e6) : nlohmann::json(nullptr)},
          {"hold",
           {{"verdict", session.hold.works ? "pass" : "fail"},
            {"reason", session.hold.reason},
            {"dawdled_s", session.hold.dawdled_s},
            {"held_span_s", session.hold.held_span_s}}},
          {"flush",
           {{"verdict", session.flush.works ? "pass" : "fail"},
            {"reason", session.flush.reason},
            {"resident_s", session.flush.resident_s},
            {"flushed_s", session.flush.flushed_s},
            {"leak_s", session.flush.leak_s}}}};
}

DeviceSession device_session_from(const nlohmann::json& row) {
  DeviceSession session;
  session.empty_span_s = row.at("empty_span_s");
  session.empty_wall_s = row.at("empty_wall_s");
  session.empty_samples = row.at("empty_samples");
  if (row.at("clock_mhz").is_number()) session.clock_hz = row["clock_mhz"].get<double>() * 1e6;
  const auto& hold = row.at("hold");
  session.hold = {hold.at("verdict") == "pass", hold.at("dawdled_s"), hold.at("held_span_s"), hold.at("reason")};
  const auto& flush = row.at("flush");
  session.flush = {flush.at("verdict") == "pass", flush.at("resident_s"), flush.at("flushed_s"), flush.at("leak_s"),
                   flush.at("reason")};
  return session;
}

}  // namespace twinbench
