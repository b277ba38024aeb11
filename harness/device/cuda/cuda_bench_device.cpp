// CUDA device 0 for the bench engine: LibTorch's stream and graphs, our timer, CUPTI's trace.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <exception>

#include "harness/device/bench/bench_device.h"
#include "harness/device/cuda/ceiling_work.h"
#include "harness/device/cuda/cuda_timer.h"
#include "harness/gpu/device_activity.h"
#include "harness/gpu/status.h"
#include "kernels/common/cuda_check.h"
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
    auto graph = std::make_shared<at::cuda::CUDAGraph>();
    graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      run();
    } catch (...) {
      const auto refusal = std::current_exception();
      try {
        graph->capture_end();  // the stream leaves the capture, broken as it is
      } catch (const std::exception&) {
        cudaGetLastError();
      }
      std::rethrow_exception(refusal);
    }
    graph->capture_end();
    // Not CUDAGraph::replay: it may refill the random generator's state first, and components draw nothing.
    return [graph, stream = stream_.stream()] {
      TWINBENCH_CUDA_CHECK(cudaGraphLaunch(graph->raw_cuda_graph_exec(), stream));
    };
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
