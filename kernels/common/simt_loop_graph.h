// The loop of kernels/common/simt_graph.h, for .cu files: a graph with a conditional node, or turns on the host.
#pragma once

#include <functional>
#include <utility>

#include "kernels/common/simt_captured_graph.h"
#include "kernels/common/simt_device.h"
#include "kernels/common/simt_graph.h"

#if defined(TWINBENCH_SIMT)
#include "harness/simt/host_graph.h"
#else
#include "kernels/common/cuda_check.h"
#endif

namespace twinbench::kernels::simt {
inline namespace TWINBENCH_FORM {

using LoopBody = std::function<void(LoopCondition, Stream)>;

#if defined(TWINBENCH_SIMT)

class LoopGraph {
 public:
  LoopGraph(Stream, LoopBody body) : body_(std::move(body)) {}
  void launch(Stream stream) const {
    run_host_loop([&](HostCondition* condition) { body_(condition, stream); });
  }

 private:
  LoopBody body_;
};

#else

// The body's launches are recorded once, on `stream`, which may not be the default one; nothing runs then. Throws
// CudaError where the runtime or the driver knows no conditional nodes.
class LoopGraph {
 public:
  LoopGraph(Stream stream, const LoopBody& body) {
    TWINBENCH_CUDA_CHECK(cudaGraphCreate(&graph_, 0));
    try {
      cudaGraphConditionalHandle more{};
      TWINBENCH_CUDA_CHECK(cudaGraphConditionalHandleCreate(&more, graph_, 1, cudaGraphCondAssignDefault));
      cudaGraphNodeParams node{};
      node.type = cudaGraphNodeTypeConditional;
      node.conditional.handle = more;
      node.conditional.type = cudaGraphCondTypeWhile;
      node.conditional.size = 1;
      cudaGraphNode_t loop{};
      TWINBENCH_CUDA_CHECK(cudaGraphAddNode(&loop, graph_, nullptr, nullptr, 0, &node));
      record_into(stream, node.conditional.phGraph_out[0], [&] { body(more, stream); });
      TWINBENCH_CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
    } catch (...) {
      cudaGraphDestroy(graph_);
      throw;
    }
  }
  ~LoopGraph() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  LoopGraph(const LoopGraph&) = delete;
  LoopGraph& operator=(const LoopGraph&) = delete;

  void launch(Stream stream) const { TWINBENCH_CUDA_CHECK(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

#endif

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::kernels::simt
