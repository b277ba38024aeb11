// A side of a paired comparison that runs on a device: regime, clock, throttle rule, and every sample on both clocks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/device/device_sample.h"
#include "harness/timing/calibration.h"

namespace twinbench {

enum class PublishedClock { kHostWall, kDeviceSpan };
const char* name_of(PublishedClock clock);  // "host_wall", "gpu_span"

// What the counters saw in one run of one side.
struct RunCounts {
  std::int64_t sync_calls = 0, scalar_reads = 0, device_copies = 0;  // each may make the host wait for the device
  std::int64_t dispatches = 0, copies = 0;                           // each launches something
};

// How both sides of a comparison are sampled. Always the same for both: clocks are never mixed within a ratio.
struct DeviceSampling {
  Regime regime = Regime::kHot;
  PublishedClock clock = PublishedClock::kDeviceSpan;
  bool hold = true;
  std::int64_t most_iterations = std::int64_t{1} << 20;  // within one pair of marks
  std::optional<double> reference_clock_hz;              // absent: no sample is discarded
  std::string reason;  // why the host's clock is published; empty where the device's is
};

// The device's span where neither side waits for the device, the blocking kernel works here, and the launches of a run
// fit into the queue behind it; the host's wall time, unheld, otherwise.
DeviceSampling decide_sampling(Regime regime, const RunCounts& a, const RunCounts& b, bool hold_works);

// The blocking kernel expired: the counters missed a synchronisation, or a run launches more than was thought.
class HoldExpired : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct KeptSample {
  double span_s = 0, wall_s = 0;  // of one iteration
  double marked_s = 0;            // between one pair of marks: what the timer must resolve
  std::optional<double> clock_hz;
  bool throttled = false;  // kept because every repetition ran at a low clock too
};

class DeviceSide {
 public:
  // `copies`: the same work on copies of the inputs, one of them unless the regime is rotating.
  DeviceSide(std::string name, std::vector<std::function<void()>> copies, DeviceTimer& device, Clock& host,
             const DeviceSampling& sampling);
  DeviceSide(const DeviceSide&) = delete;
  DeviceSide& operator=(const DeviceSide&) = delete;

  // Valid as long as this object. Its samples throw HoldExpired.
  Side side();
  // Every kept sample in order, calibration and warm-up first; the last n are those of the comparison.
  const std::vector<KeptSample>& samples() const { return samples_; }
  std::vector<KeptSample> last(std::size_t n) const;
  std::size_t discarded() const { return discarded_; }  // ran below 75 % of the reference clock

 private:
  KeptSample measured(std::int64_t iterations);
  bool is_throttled(const KeptSample& sample) const;

  std::string name_;
  std::vector<std::function<void()>> copies_;
  DeviceTimer& device_;
  Clock& host_;
  DeviceSampling sampling_;
  std::size_t next_copy_ = 0, discarded_ = 0;
  std::vector<KeptSample> samples_;
};

// Copies of `input_bytes` that together exceed twice the cache; 0 where more than `most` would be needed.
std::size_t rotating_copies(double input_bytes, double cache_bytes, std::size_t most = 64);

// A pair of marks below this many empty pairs says more about the timer than about the work.
constexpr double kTimerMultiple = 20;

// What the samples of a comparison say about themselves.
struct SampleQuality {
  bool timer_limited = false;      // the median window is below kTimerMultiple empty pairs
  std::optional<double> clock_hz;  // median
  std::size_t throttled = 0;
};
SampleQuality quality_of(const std::vector<KeptSample>& samples, double empty_span_s);

// Why the pairs cannot be believed: more than a fifth of them ran their two sides at clocks more than 2 % apart, or
// throttled. Empty where they can.
std::string clock_problem(const std::vector<KeptSample>& a, const std::vector<KeptSample>& b);

}  // namespace twinbench
