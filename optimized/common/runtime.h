// The one header in which the CUDA path differs between a card and the host (TWINBENCH_SIMT): device guard, stream and
// where tensors must lie. Beside it only simt::launch differs (kernels/common/simt_device.h).
#pragma once

#include <c10/core/Device.h>

#include "kernels/common/stream.h"

#if !defined(TWINBENCH_SIMT)
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace twinbench {

// Both forms may be in one program, so their names differ for the linker; adapters see no difference.
#if defined(TWINBENCH_SIMT)
inline namespace simt_runtime {

struct DeviceGuard {
  explicit DeviceGuard(c10::Device) {}
};
inline kernels::Stream stream() { return kernels::current_host_stream(); }
inline bool lies_there(c10::Device tensors) { return tensors.is_cpu(); }
inline constexpr const char* kWhereInputsGo = "put the inputs on the CPU: simt runs the CUDA path there";

}  // namespace simt_runtime
#else
inline namespace cuda_runtime {

using DeviceGuard = c10::cuda::CUDAGuard;
inline kernels::Stream stream() { return c10::cuda::getCurrentCUDAStream().stream(); }
inline bool lies_there(c10::Device tensors) { return tensors.is_cuda(); }
inline constexpr const char* kWhereInputsGo = "put the inputs on a CUDA device";

}  // namespace cuda_runtime
#endif

}  // namespace twinbench
