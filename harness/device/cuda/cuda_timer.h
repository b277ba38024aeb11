// The DeviceTimer of a CUDA device: events, a blocking kernel, a flush of twice the L2, the clock of a multiprocessor.
#pragma once

#include <memory>

#include "harness/device/device_timer.h"
#include "kernels/common/stream.h"

namespace twinbench::cuda {

struct CudaTimerOptions {
  double hold_limit_s = 5;  // after which the blocking kernel gives up; half a second beside a display's watchdog
};

// On the current device, with everything queued on `stream`, on which the timed work must run too. Allocates 4 x L2 and
// 1 MiB of device memory, and sets the device's limit of persisting L2 lines to nothing until it is destroyed. Throws
// CudaError, Error(kBadArgument) where CUDA_LAUNCH_BLOCKING is set; in a build without CUDA Error(kMissingDevice).
std::unique_ptr<DeviceTimer> open_cuda_timer(kernels::Stream stream, const CudaTimerOptions& options = {});

}  // namespace twinbench::cuda
