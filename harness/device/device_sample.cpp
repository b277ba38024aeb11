// The order of one sample, and the guard that never leaves a stream held.
#include "harness/device/device_sample.h"

#include "src/common/error.h"

namespace twinbench {
namespace {

class ReleaseGuard {
 public:
  explicit ReleaseGuard(DeviceTimer& device) : device_(device) {}
  ~ReleaseGuard() { device_.release(); }
  ReleaseGuard(const ReleaseGuard&) = delete;
  ReleaseGuard& operator=(const ReleaseGuard&) = delete;

 private:
  DeviceTimer& device_;
};

}  // namespace

const char* name_of(Regime regime) {
  switch (regime) {
    case Regime::kHot: return "hot";
    case Regime::kCold: return "cold";
    case Regime::kRotating: return "rotating";
  }
  return "hot";
}

Regime regime_named(const std::string& word) {
  for (const Regime regime : {Regime::kHot, Regime::kCold, Regime::kRotating})
    if (word == name_of(regime)) return regime;
  throw Error(ErrorKind::kUnknownName, "regime", word, "give hot, cold or rotating");
}

DeviceSample take_device_sample(DeviceTimer& device, Clock& host, const std::function<void()>& body,
                                const SamplePlan& plan) {
  if (plan.flush) device.flush_cache();
  device.synchronize();
  const std::int64_t start = host.now();
  {
    const ReleaseGuard guard(device);
    if (plan.hold) device.hold();
    device.mark_start();
    body();
    device.mark_stop();
  }
  device.synchronize();
  const double wall_s = seconds_between(start, host.now());
  const DeviceReading reading = device.read();
  return {reading.span_s, wall_s, reading.clock_hz, reading.hold_expired};
}

}  // namespace twinbench
