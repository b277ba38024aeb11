// A device as the sampling loop sees it: ordered work on one stream, two marks on it, a way to hold it. Torch-free.
#pragma once

#include <optional>
#include <string>

namespace twinbench {

// What the caches hold when a timed run starts. Printed beside every number.
enum class Regime {
  kHot,       // what the run before left there
  kCold,      // nothing of it: the cache is flushed before each run
  kRotating,  // the inputs change from run to run, and together exceed the cache twice
};

const char* name_of(Regime regime);            // "hot", "cold", "rotating"
Regime regime_named(const std::string& word);  // throws Error(kUnknownName)

struct DeviceReading {
  double span_s = 0;               // from the start mark to the stop mark, on the device's clock
  std::optional<double> clock_hz;  // of the multiprocessors between the marks; absent where the window is too short
  bool hold_expired = false;       // the blocking kernel gave up: somebody synchronised under it, or the queue filled
};

class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  // Waits until the device has done everything, on all streams.
  virtual void synchronize() = 0;
  // Queues a write of twice the L2 cache, with lines that persist in it reset, and what leaves none of its lines dirty.
  virtual void flush_cache() = 0;
  // Queues a read, line after dependent line, of a buffer far smaller than L2: slower where it does not lie there.
  virtual void read_resident() = 0;
  // Queues a kernel that holds the stream until release() or a time limit, so that the host's launches are all queued
  // before the first of them runs.
  virtual void hold() = 0;
  // Never throws; does nothing where nothing is held.
  virtual void release() noexcept = 0;
  virtual void mark_start() = 0;
  virtual void mark_stop() = 0;
  // Of the last pair of marks, once the device is idle.
  virtual DeviceReading read() = 0;
  // Lets the device cool.
  virtual void rest(double seconds) = 0;
  virtual double cache_bytes() const = 0;  // L2
};

}  // namespace twinbench
