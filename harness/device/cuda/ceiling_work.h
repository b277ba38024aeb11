// What the ceilings of a CUDA device are measured with: LibTorch's own copies and products, and two kernels of ours.
#pragma once

#include <vector>

#include "harness/device/device_ceilings.h"
#include "kernels/common/stream.h"

namespace twinbench::cuda {

// On the current device; `stream` is the current stream, not the default one. `quick`: smaller sizes.
std::vector<CeilingWork> ceiling_work(kernels::Stream stream, bool quick);

}  // namespace twinbench::cuda
