// The CUDA stream type for launcher headers, without the CUDA headers: builds on machines that have no toolkit.
#pragma once

struct CUstream_st;  // what the CUDA runtime's cudaStream_t points to

namespace twinbench::kernels {

using Stream = CUstream_st*;

}  // namespace twinbench::kernels
