// What the bench engine needs of a device: its timer, a place for tensors, graphs, the traced pass, and its ceilings.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/device/device_ceilings.h"
#include "harness/device/device_timer.h"
#include "harness/timing/clock.h"

namespace twinbench {

// What one run made the device do, as an observer saw it. A pass of its own: the observer slows the host down.
struct TracedRun {
  std::optional<double> busy_s;  // union of kernels, copies and memsets over all streams; absent with the reason
  std::string reason;
};

class BenchDevice {
 public:
  virtual ~BenchDevice() = default;
  virtual DeviceTimer& timer() = 0;
  virtual Clock& host() = 0;
  virtual c10::Device tensors() const = 0;  // where a twin's inputs lie
  virtual std::string name() const = 0;     // as the driver gives it: "NVIDIA H200"
  // Records what run() queues as a graph without running it. The returned function queues the graph once. Throws where
  // run() does what a graph cannot hold (it waits, it allocates outside the pool); the stream is usable afterwards.
  virtual std::function<void()> captured(const std::function<void()>& run) = 0;
  virtual TracedRun traced(const std::function<void()>& run) = 0;
  // What its ceilings are measured with; `quick`: smaller sizes.
  virtual std::vector<CeilingWork> ceiling_work(bool quick) = 0;
};

// CUDA device 0 on a stream of its own, which becomes the current one of this thread while the object lives. Throws
// Error(kMissingDevice), with the runtime's reason, or because the build has no CUDA; CudaError of a single call.
std::unique_ptr<BenchDevice> open_cuda_bench_device();

}  // namespace twinbench
