// Not by LibTorch's CUDAGraph: its capture_end throws for a refused capture before it ends allocation to the pool, and
// the allocator would stay in that state (pytorch #180395).
#include "harness/device/cuda/graph_capture.h"

#include <cuda_runtime_api.h>

#include <exception>
#include <memory>
#include <utility>

#include "kernels/common/cuda_check.h"

namespace twinbench::cuda {
namespace {

class Graph {
 public:
  Graph(cudaGraph_t graph, GraphMemory& memory) {
    const cudaError_t code = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    kernels::check_cuda(code, "cudaGraphInstantiate", __FILE__, __LINE__);
    release_ = std::move(memory.release);
  }
  ~Graph() {
    cudaGraphExecDestroy(executable_);
    release_();
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(kernels::Stream stream) const { TWINBENCH_CUDA_CHECK(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraphExec_t executable_ = nullptr;
  std::function<void()> release_;
};

}  // namespace

std::function<void()> captured_graph(kernels::Stream stream, const std::function<void()>& run, GraphMemory memory) {
  memory.begin();
  std::exception_ptr refusal;
  cudaGraph_t captured = nullptr;
  try {
    TWINBENCH_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      run();
    } catch (...) {
      refusal = std::current_exception();
    }
    const cudaError_t ended = cudaStreamEndCapture(stream, &captured);  // the stream leaves the capture, broken or not
    if (refusal)
      cudaGetLastError();
    else
      kernels::check_cuda(ended, "cudaStreamEndCapture", __FILE__, __LINE__);
  } catch (...) {
    refusal = std::current_exception();
  }
  memory.end();
  try {
    if (refusal) {
      if (captured) cudaGraphDestroy(captured);
      std::rethrow_exception(refusal);
    }
    auto graph = std::make_shared<Graph>(captured, memory);
    return [graph, stream] { graph->launch(stream); };
  } catch (...) {
    if (memory.release) memory.release();
    throw;
  }
}

}  // namespace twinbench::cuda
