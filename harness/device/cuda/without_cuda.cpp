// Stands in for the CUDA side in a build without it: says what is missing.
#include "harness/device/bench/bench_device.h"
#include "harness/device/cuda/cuda_timer.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

Error no_cuda() {
  return Error(ErrorKind::kMissingDevice, "build", "without CUDA",
               "configure with --preset gpu (needs nvcc), or use --device cpu");
}

}  // namespace

std::unique_ptr<DeviceTimer> cuda::open_cuda_timer(kernels::Stream, const CudaTimerOptions&) { throw no_cuda(); }

std::unique_ptr<BenchDevice> open_cuda_bench_device() { throw no_cuda(); }

}  // namespace twinbench
