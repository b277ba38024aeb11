// Work that is recorded once and then started again and again as a whole: a CUDA graph, or on simt the launches
// themselves with the arguments they were recorded with. No CUDA headers.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "kernels/common/stream.h"

namespace twinbench::kernels {

class CaptureRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Records what `work` launches on the stream it is given; nothing of it runs. What is returned starts it on a stream.
// Arguments are as they were: what changes from one start to the next must lie in the device's memory. Throws what
// `work` throws, and CaptureRefused where the runtime does not record it.
std::function<void(Stream)> captured_graph(const std::string& name, const std::function<void(Stream)>& work);

}  // namespace twinbench::kernels
