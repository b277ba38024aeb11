// Work that is recorded once and then started again and again as a whole: a CUDA graph, or on simt the launches
// themselves with the arguments they were recorded with. No CUDA headers.
#pragma once

#include <functional>
#include <string>

#include "kernels/common/stream.h"

namespace twinbench::kernels {

// Records what `work` launches on the stream it is given; nothing of it runs. What is returned starts it on a stream.
// Arguments are as they were: what changes from one start to the next must lie in the device's memory. Throws what
// `work` throws, and CudaError where the runtime refuses the capture.
std::function<void(Stream)> captured_graph(const std::string& name, const std::function<void(Stream)>& work);

}  // namespace twinbench::kernels
