// The SIMT layer on the GPU: the block context made of CUDA intrinsics, and the launch. For simt_device.h.
#pragma once

#if !defined(__CUDACC__)
#error "cuda_launch.h needs nvcc; .cu files include kernels/common/simt_device.h"
#endif

#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>

#include "kernels/common/cuda_launch_checks.h"
#include "kernels/common/kernel_name.h"
#include "kernels/common/launch_check.h"
#include "kernels/common/simt.h"
#include "kernels/common/stream.h"
#include "src/common/device_event.h"

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

// Launches asynchronously on `stream`. Throws Error(kBadLaunch) for a launch that no card takes, CudaError if this one
// refuses it. An empty grid launches nothing.
template <class Kernel, class... Arguments>
void launch(Kernel, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes, Stream stream,
            const Arguments&... arguments) {
  static_assert(std::is_empty_v<Kernel>, "a kernel has no state: pass values as arguments");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  check_launch(kernel_name<Kernel>, {.grid = {grid.x, grid.y, grid.z},
                                     .block = {block.x, block.y, block.z},
                                     .dynamic_shared_bytes = dynamic_shared_bytes,
                                     .max_threads = Kernel::kMaxThreads,
                                     .stream = stream});
  check_nothing_earlier(kernel_name<Kernel>);
  if (dynamic_shared_bytes > kSharedWithoutAsking) {
    static std::atomic<std::uint64_t> allowed{0};
    allow_dynamic_shared(reinterpret_cast<const void*>(run<Kernel, Arguments...>), allowed);
  }
  run<Kernel, Arguments...><<<grid, block, dynamic_shared_bytes, stream>>>(arguments...);
  check_launched(kernel_name<Kernel>);
  announce(DeviceEvent::kLaunch, [] { return kernel_name<Kernel>(); });
}

}  // namespace twinbench::kernels::simt
