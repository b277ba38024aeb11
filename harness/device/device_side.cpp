// Sampling of a side on a device.
#include "harness/device/device_side.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/timing/statistics.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::int64_t kMostQueued = 512;  // a launch queue holds about a thousand
// An operator may launch several kernels, and an optimized variant launches kernels that no operator counts.
constexpr std::int64_t kLaunchesAnOperator = 5, kUncountedLaunches = 16;
constexpr double kLowestClock = 0.75;
constexpr std::size_t kMostRepetitions = 8;
constexpr double kFirstRest = 0.05, kRestGrowth = 1.5, kLongestRest = 0.5;  // seconds
constexpr double kClocksApart = 0.02, kShareOfPairs = 0.2;
constexpr double kLongestWarmed = 0.01;        // seconds: filling L2 takes tens of microseconds
constexpr double kShortestClockWindow = 1e-4;  // seconds: below it the device's timers do not resolve 2 %

std::int64_t launches_of(const RunCounts& counts) {
  return kLaunchesAnOperator * (counts.dispatches + counts.copies) + kUncountedLaunches;
}

std::string waits(const RunCounts& counts) {
  if (counts.scalar_reads > 0) return std::to_string(counts.scalar_reads) + " scalar reads";
  if (counts.sync_calls > 0) return std::to_string(counts.sync_calls) + " synchronising calls";
  if (counts.device_copies > 0) return std::to_string(counts.device_copies) + " copies between devices";
  return "";
}

}  // namespace

const char* name_of(PublishedClock clock) { return clock == PublishedClock::kHostWall ? "host_wall" : "gpu_span"; }

DeviceSampling decide_sampling(Regime regime, const RunCounts& a, const RunCounts& b, bool hold_works) {
  DeviceSampling sampling;
  sampling.regime = regime;
  const std::int64_t launches = std::max(launches_of(a), launches_of(b));
  if (const std::string why = waits(a); !why.empty())
    sampling.reason = "a run waits for the device: " + why;
  else if (const std::string other = waits(b); !other.empty())
    sampling.reason = "a run waits for the device: " + other;
  else if (!hold_works)
    sampling.reason = "the blocking kernel does not hold the stream in this session";
  else if (launches > kMostQueued)
    sampling.reason = "a run may queue " + std::to_string(launches) + " launches, more than a held stream takes";
  if (!sampling.reason.empty()) {
    sampling.clock = PublishedClock::kHostWall;
    sampling.hold = false;
    return sampling;
  }
  sampling.most_iterations = std::max<std::int64_t>(1, kMostQueued / launches);
  return sampling;
}

DeviceSide::DeviceSide(std::string name, std::vector<std::function<void()>> copies, DeviceTimer& device, Clock& host,
                       const DeviceSampling& sampling)
    : name_(std::move(name)), copies_(std::move(copies)), device_(device), host_(host), sampling_(sampling) {
  if (copies_.empty()) throw Error(ErrorKind::kBadArgument, "copies", "none", "give the side at least one run");
}

Side DeviceSide::side() {
  Side side;
  side.name = name_;
  side.sample_seconds = [this](std::int64_t iterations) {
    double rest_s = kFirstRest;
    KeptSample sample = measured(iterations);
    for (std::size_t repetition = 0; is_throttled(sample); ++repetition) {
      if (repetition == kMostRepetitions) {  // a locked or capped card: the samples agree with one another at least
        sample.throttled = true;
        break;
      }
      ++discarded_;
      device_.rest(rest_s);
      rest_s = std::min(kLongestRest, rest_s * kRestGrowth);
      sample = measured(iterations);
    }
    samples_.push_back(sample);
    return static_cast<double>(iterations) *
           (sampling_.clock == PublishedClock::kHostWall ? sample.wall_s : sample.span_s);
  };
  return side;
}

KeptSample DeviceSide::measured(std::int64_t iterations) {
  // Cold: a flush before each run, so each run has its own marks.
  const bool cold = sampling_.regime == Regime::kCold;
  const std::int64_t windows = cold ? iterations : 1, runs = cold ? 1 : iterations;
  const auto run_next = [&] {
    copies_[next_copy_]();
    next_copy_ = (next_copy_ + 1) % copies_.size();
  };
  const auto body = [&] {
    for (std::int64_t run = 0; run < runs; ++run) run_next();
  };
  // Hot: the other side's data lie in the cache by now. Beside a long run that is too little to show.
  if (sampling_.regime == Regime::kHot && (samples_.empty() || samples_.back().span_s < kLongestWarmed)) run_next();
  KeptSample sample;
  double cycles = 0, clocked_s = 0;
  for (std::int64_t window = 0; window < windows; ++window) {
    const DeviceSample one = take_device_sample(device_, host_, body, {cold, sampling_.hold});
    if (one.hold_expired) throw HoldExpired(name_ + ": the blocking kernel expired");
    sample.span_s += one.span_s;
    sample.wall_s += one.wall_s;
    if (one.clock_hz) cycles += *one.clock_hz * one.span_s;
    if (one.clock_hz) clocked_s += one.span_s;
  }
  sample.marked_s = sample.span_s / static_cast<double>(windows);
  sample.span_s /= static_cast<double>(iterations);
  sample.wall_s /= static_cast<double>(iterations);
  if (clocked_s > 0) sample.clock_hz = cycles / clocked_s;
  return sample;
}

bool DeviceSide::is_throttled(const KeptSample& sample) const {
  return sample.clock_hz && sampling_.reference_clock_hz &&
         *sample.clock_hz < kLowestClock * *sampling_.reference_clock_hz;
}

std::vector<KeptSample> DeviceSide::last(std::size_t n) const {
  return {samples_.end() - static_cast<std::ptrdiff_t>(std::min(n, samples_.size())), samples_.end()};
}

std::size_t rotating_copies(double input_bytes, double cache_bytes, std::size_t most) {
  if (!(input_bytes > 0)) return 0;
  const double copies = std::floor(2 * cache_bytes / input_bytes) + 1;
  return copies > static_cast<double>(most) ? 0 : std::max<std::size_t>(2, static_cast<std::size_t>(copies));
}

SampleQuality quality_of(const std::vector<KeptSample>& samples, double empty_span_s) {
  SampleQuality quality;
  std::vector<double> windows, clocks;
  for (const KeptSample& sample : samples) {
    windows.push_back(sample.marked_s);
    if (sample.clock_hz) clocks.push_back(*sample.clock_hz);
    quality.throttled += sample.throttled;
  }
  if (!windows.empty()) quality.timer_limited = median(windows) < kTimerMultiple * empty_span_s;
  if (!clocks.empty()) quality.clock_hz = median(clocks);
  return quality;
}

std::string clock_problem(const std::vector<KeptSample>& a, const std::vector<KeptSample>& b) {
  const std::size_t pairs = std::min(a.size(), b.size());
  std::size_t apart = 0, throttled = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    throttled += a[i].throttled || b[i].throttled;
    if (!a[i].clock_hz || !b[i].clock_hz || std::min(a[i].marked_s, b[i].marked_s) < kShortestClockWindow) continue;
    apart += std::fabs(*a[i].clock_hz / *b[i].clock_hz - 1) > kClocksApart;
  }
  const auto share = [&](std::size_t count) {
    return std::to_string(count) + " of " + std::to_string(pairs) + " pairs";
  };
  if (static_cast<double>(throttled) > kShareOfPairs * static_cast<double>(pairs))
    return "clock: throttled in " + share(throttled);
  if (static_cast<double>(apart) > kShareOfPairs * static_cast<double>(pairs))
    return "clock: more than 2 % apart in " + share(apart);
  return "";
}

}  // namespace twinbench
