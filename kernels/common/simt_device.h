// The SIMT layer on the GPU: the block context made of CUDA intrinsics, and the launch. Include from .cu files only.
#pragma once

#if !defined(__CUDACC__)
#error "simt_device.h needs nvcc; host code includes harness/simt/host.h"
#endif

#include <cstdint>
#include <string>
#include <type_traits>
#include <typeinfo>

#include "kernels/common/cuda_check.h"
#include "kernels/common/simt.h"
#include "kernels/common/stream.h"

namespace twinbench::kernels::simt {

// Stateless: every member is one intrinsic, so nothing is left of it after inlining.
struct DeviceBlock {
  __device__ __forceinline__ Index3 thread() const { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  __device__ __forceinline__ Index3 index() const { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  __device__ __forceinline__ Index3 size() const { return {blockDim.x, blockDim.y, blockDim.z}; }
  __device__ __forceinline__ Index3 grid() const { return {gridDim.x, gridDim.y, gridDim.z}; }

  __device__ __forceinline__ void barrier() { __syncthreads(); }
  __device__ __forceinline__ void warp_barrier(std::uint32_t mask = kFullMask) { __syncwarp(mask); }
  __device__ __forceinline__ void fence() { __threadfence(); }

  template <class T>
  __device__ __forceinline__ T shuffle_down(T value, unsigned delta, std::uint32_t mask = kFullMask) {
    return __shfl_down_sync(mask, value, delta);
  }
  template <class T>
  __device__ __forceinline__ T shuffle_xor(T value, int lanes, std::uint32_t mask = kFullMask) {
    return __shfl_xor_sync(mask, value, lanes);
  }
  template <class T>
  __device__ __forceinline__ T shuffle_index(T value, int lane, std::uint32_t mask = kFullMask) {
    return __shfl_sync(mask, value, lane);
  }
  __device__ __forceinline__ std::uint32_t ballot(bool predicate, std::uint32_t mask = kFullMask) {
    return __ballot_sync(mask, predicate);
  }

  template <class T, int kCount, int kSlot>
  __device__ __forceinline__ T* shared_array() {
    __shared__ T storage[kCount];
    return storage;
  }
  template <class T>
  __device__ __forceinline__ T* dynamic_shared(int byte_offset) {
    extern __shared__ __align__(16) unsigned char dynamic_storage[];
    return reinterpret_cast<T*>(dynamic_storage + byte_offset);
  }

  template <class T>
  __device__ __forceinline__ T atomic_add(T* where, T value) {
    return atomicAdd(where, value);
  }
  template <class T>
  __device__ __forceinline__ T atomic_max(T* where, T value) {
    return atomicMax(where, value);
  }
};

// Blocks an SM must be able to hold at once: Kernel::kMinBlocksPerSm, or 0 (no demand) if the kernel names none.
template <class Kernel>
constexpr int min_blocks_per_sm() {
  if constexpr (requires { Kernel::kMinBlocksPerSm; }) {
    return Kernel::kMinBlocksPerSm;
  } else {
    return 0;
  }
}

template <class Kernel, class... Arguments>
__global__ void __launch_bounds__(Kernel::kMaxThreads, min_blocks_per_sm<Kernel>()) run(Arguments... arguments) {
  DeviceBlock block;
  Kernel{}(block, arguments...);
}

inline dim3 grid(std::int64_t blocks) { return static_cast<unsigned>(blocks); }

// Launches asynchronously on `stream`. Throws CudaError if the launch is refused. An empty grid launches nothing.
template <class Kernel, class... Arguments>
void launch(Kernel, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes, Stream stream,
            const Arguments&... arguments) {
  static_assert(std::is_empty_v<Kernel>, "a kernel has no state: pass values as arguments");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (dynamic_shared_bytes > 48 * 1024) {
    TWINBENCH_CUDA_CHECK(cudaFuncSetAttribute(run<Kernel, Arguments...>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(dynamic_shared_bytes)));
  }
  run<Kernel, Arguments...><<<grid, block, dynamic_shared_bytes, stream>>>(arguments...);
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) throw CudaError(code, typeid(Kernel).name(), __FILE__, __LINE__);
}

}  // namespace twinbench::kernels::simt
