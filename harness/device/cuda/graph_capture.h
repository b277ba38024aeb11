// A run captured into a CUDA graph, by the runtime's own calls: whatever happens, capture and memory pool are ended.
#pragma once

#include <functional>

#include "kernels/common/stream.h"

namespace twinbench::cuda {

// The allocator's part: while a run is captured its memory comes from a pool of the graph's own, which lives with it.
struct GraphMemory {
  std::function<void()> begin, end, release;
};

// Captures what `run` queues on `stream` in this thread, and returns its replay on that stream. Throws what `run`
// throws, or CudaError where the capture is refused; then the stream is out of the capture and the pool is given back.
std::function<void()> captured_graph(kernels::Stream stream, const std::function<void()>& run, GraphMemory memory);

}  // namespace twinbench::cuda
