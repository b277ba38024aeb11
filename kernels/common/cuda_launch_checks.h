// The host's calls of the CUDA runtime around a launch. No device code: also compiled against a fake runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "kernels/common/cuda_check.h"
#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

constexpr std::size_t kSharedWithoutAsking = 48 * 1024;  // bytes of dynamic shared memory that every kernel may have

// Permission for all the dynamic shared memory that a launch may ask for: once for a kernel instance and device, not on
// every launch. `allowed` is the instance's, a bit a device.
inline void allow_dynamic_shared(const void* instance, std::atomic<std::uint64_t>& allowed) {
  int device = 0;
  TWINBENCH_CUDA_CHECK(cudaGetDevice(&device));
  const std::uint64_t bit = std::uint64_t{1} << (device % 64);
  if ((allowed.load(std::memory_order_relaxed) & bit) != 0) return;
  cudaFuncAttributes attributes{};
  TWINBENCH_CUDA_CHECK(cudaFuncGetAttributes(&attributes, instance));
  TWINBENCH_CUDA_CHECK(cudaFuncSetAttribute(instance, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            kMaxSharedBytes - static_cast<int>(attributes.sharedSizeBytes)));
  allowed.fetch_or(bit, std::memory_order_relaxed);
}

// Before a launch: an error that an earlier call or kernel left behind is not the next kernel's.
inline void check_nothing_earlier(std::string (*kernel)()) {
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) throw CudaError(code, ("what ran before " + kernel()).c_str(), __FILE__, __LINE__);
}

// After a launch: this one's own refusal.
inline void check_launched(std::string (*kernel)()) {
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) throw CudaError(code, ("the launch of " + kernel()).c_str(), __FILE__, __LINE__);
}

}  // namespace twinbench::kernels::simt
