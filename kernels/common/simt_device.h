// The launch of a SIMT kernel, for .cu files: on a card where nvcc compiles them, on the host under TWINBENCH_SIMT.
#pragma once

#if defined(TWINBENCH_SIMT)
#include "harness/simt/host_launch.h"
#elif defined(__CUDACC__)
#include "kernels/common/cuda_launch.h"
#else
#error "simt_device.h needs nvcc, or TWINBENCH_SIMT for the host's build of the launchers"
#endif

namespace twinbench::kernels::simt {

inline dim3 grid(std::int64_t blocks) { return static_cast<unsigned>(checked_blocks(blocks)); }

}  // namespace twinbench::kernels::simt
