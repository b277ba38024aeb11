// The stream type for launcher headers, without the CUDA headers: builds on machines that have no toolkit.
#pragma once

struct CUstream_st;  // what the CUDA runtime's cudaStream_t points to

// What has other code, or another layout, for a card than for the host lies in this inline namespace, which is part of
// its linker name: of two inline functions of one name the linker keeps one, and the other form would run it.
// ci/one_definition.py finds what is outside.
#if defined(TWINBENCH_SIMT)
#define TWINBENCH_FORM simt_form
#else
#define TWINBENCH_FORM cuda_form
#endif

namespace twinbench::kernels {

// The type is part of every launcher's linker name: the launchers of a card and those of the host (TWINBENCH_SIMT, the
// same sources) can be in one program.
#if defined(TWINBENCH_SIMT)
struct HostStream;
using Stream = HostStream*;
Stream current_host_stream();  // never null, so that a launcher given null is caught (harness/simt/host_launch.cpp)
#else
using Stream = CUstream_st*;
#endif

}  // namespace twinbench::kernels
