// The graph of kernels/common/captured_graph.h, for .cu files: the runtime's own, or on the host a list of launches.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/common/simt_device.h"
#include "kernels/common/stream.h"
#include "src/common/device_event.h"

#if !defined(TWINBENCH_SIMT)
#include "kernels/common/cuda_check.h"
#endif

namespace twinbench::kernels::simt {
inline namespace TWINBENCH_FORM {

#if defined(TWINBENCH_SIMT)

class CapturedGraph {
 public:
  CapturedGraph(std::string name, const std::function<void(Stream)>& work)
      : name_(std::move(name)), launches_(recorded_launches([&] { work(current_host_stream()); })) {
    announce(DeviceEvent::kCapture, [this] { return name_; });
  }
  void launch(Stream) const {
    announce(DeviceEvent::kGraphLaunch, [this] { return name_; });
    for (const HostLaunch& launch : launches_) run_host_launch(launch.kernel, launch.run);
  }

 private:
  std::string name_;
  std::vector<HostLaunch> launches_;
};

#else

// What `work` queues on `stream` becomes nodes of `into`. Whatever happens, the stream is out of the capture.
inline void record_into(Stream stream, cudaGraph_t into, const std::function<void()>& work) {
  TWINBENCH_CUDA_CHECK(
      cudaStreamBeginCaptureToGraph(stream, into, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t captured{};
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(stream, &captured);
    cudaGetLastError();
    throw;
  }
  TWINBENCH_CUDA_CHECK(cudaStreamEndCapture(stream, &captured));
}

class CapturedGraph {
 public:
  CapturedGraph(std::string name, const std::function<void(Stream)>& work) : name_(std::move(name)) {
    try {
      TWINBENCH_CUDA_CHECK(cudaGraphCreate(&graph_, 0));
      // Of its own: the default stream cannot be captured.
      TWINBENCH_CUDA_CHECK(cudaStreamCreateWithFlags(&recording_, cudaStreamNonBlocking));
      record_into(recording_, graph_, [&] { work(recording_); });
      TWINBENCH_CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
    } catch (...) {
      destroy();
      throw;
    }
    announce(DeviceEvent::kCapture, [this] { return name_; });
  }
  ~CapturedGraph() { destroy(); }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  void launch(Stream stream) const {
    announce(DeviceEvent::kGraphLaunch, [this] { return name_; });
    TWINBENCH_CUDA_CHECK(cudaGraphLaunch(executable_, stream));
  }

 private:
  void destroy() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (recording_ != nullptr) cudaStreamDestroy(recording_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  std::string name_;
  cudaStream_t recording_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

#endif

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::kernels::simt
