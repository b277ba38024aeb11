// CUDA device 0 for the bench engine: LibTorch's stream and graphs, our timer, CUPTI's trace.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "harness/device/bench/bench_device.h"
#include "harness/device/cuda/ceiling_work.h"
#include "harness/device/cuda/cuda_timer.h"
#include "harness/device/cuda/graph_capture.h"
#include "harness/gpu/device_activity.h"
#include "harness/gpu/status.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

class CudaBenchDevice final : public BenchDevice {
 public:
  // A stream of the pool: graphs are not captured on the default one, and timer, variants and graphs must share it.
  CudaBenchDevice()
      : stream_(c10::cuda::getStreamFromPool(false, 0)),
        current_(stream_),
        timer_(cuda::open_cuda_timer(stream_.stream())) {}

  DeviceTimer& timer() override { return *timer_; }
  Clock& host() override { return clock_; }
  c10::Device tensors() const override { return c10::Device(c10::DeviceType::CUDA, 0); }
  std::string name() const override { return at::cuda::getDeviceProperties(0)->name; }

  std::function<void()> captured(const std::function<void()>& run) override {
    timer_->synchronize();
    const auto pool = at::cuda::graph_pool_handle();
    const cudaStream_t stream = stream_.stream();
    // Components draw nothing at random, so no generator takes part.
    return cuda::captured_graph(stream, run,
                                {.begin =
                                     [pool, stream] {
                                       c10::cuda::CUDACachingAllocator::beginAllocateToPool(
                                           0, pool, [stream](cudaStream_t asking) { return asking == stream; });
                                     },
                                 .end = [pool] { c10::cuda::CUDACachingAllocator::endAllocateToPool(0, pool); },
                                 .release = [pool] { c10::cuda::CUDACachingAllocator::releasePool(0, pool); }});
  }

  TracedRun traced(const std::function<void()>& run) override {
    TraceOptions options;
    options.finish = [this] { timer_->synchronize(); };
    const DeviceActivity activity = twinbench::traced(run, 1, options);
    if (!activity.complete()) return {std::nullopt, activity.reason};
    return {activity.busy_s, ""};
  }

  std::vector<CeilingWork> ceiling_work(bool quick) override { return cuda::ceiling_work(stream_.stream(), quick); }

 private:
  SteadyClock clock_;
  c10::cuda::CUDAStream stream_;
  c10::cuda::CUDAStreamGuard current_;
  std::unique_ptr<DeviceTimer> timer_;
};

}  // namespace

std::unique_ptr<BenchDevice> open_cuda_bench_device() {
  try {
    return std::make_unique<CudaBenchDevice>();
  } catch (const c10::Error& error) {  // its own message carries a page of stack
    const auto failure = cuda_failure_in(error.what());
    throw Error(ErrorKind::kMissingDevice, "CUDA device 0", "not usable",
                failure ? failure->text() : error.what_without_backtrace());
  }
}

}  // namespace twinbench
