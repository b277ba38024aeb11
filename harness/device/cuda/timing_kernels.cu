// The timer's kernels. One thread each, but for the stamps and the load of the special-function units.
#include <cuda_runtime.h>

#include "harness/device/cuda/timing_kernels.h"
#include "kernels/common/cuda_check.h"

namespace twinbench::cuda {
namespace {

constexpr int kReadThreads = 256, kReadBlocks = 8;        // blocks: of a multiprocessor
constexpr int kSpecialThreads = 256, kSpecialChains = 8;  // chains: independent values a thread, to hide latency
constexpr unsigned kPollNanoseconds = 200;                // between two looks at the flag: it lies across the bus

__device__ __forceinline__ std::uint64_t nanoseconds_now() {
  std::uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

__device__ __forceinline__ unsigned multiprocessor() {
  unsigned value;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
  return value;
}

__global__ void hold(volatile HoldFlags* flags, std::uint32_t ticket, std::uint64_t limit_ns) {
  const std::uint64_t start = nanoseconds_now();
  while (static_cast<std::int32_t>(flags->released - ticket) < 0) {
    if (nanoseconds_now() - start > limit_ns) {
      flags->expired = ticket;
      __threadfence_system();
      return;
    }
    __nanosleep(kPollNanoseconds);
  }
}

__global__ void stamp_clocks(ClockStamp* stamp) {
  if (multiprocessor() != 0 || atomicExch(&stamp->taken, 1u) != 0) return;
  stamp->nanoseconds = nanoseconds_now();
  stamp->cycles = static_cast<std::uint64_t>(clock64());
}

__global__ void walk_chain(const std::uint32_t* chain, int lines, std::uint32_t* end) {
  std::uint32_t at = 0;
  for (int line = 0; line < lines; ++line) at = __ldcg(chain + at);  // .cg: L1 is passed by
  *end = at;
}

__global__ void __launch_bounds__(kReadThreads) read_all(const uint4* memory, std::size_t count, std::uint32_t* end) {
  std::uint32_t sum = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    const uint4 value = __ldcg(memory + i);
    sum |= value.x | value.y | value.z | value.w;
  }
  if (sum != 0) *end = sum;  // never: what is read are zeros
}

__global__ void __launch_bounds__(kSpecialThreads) special(float* out, int rounds) {
  float value[kSpecialChains];
#pragma unroll
  for (int chain = 0; chain < kSpecialChains; ++chain)
    value[chain] = -1.0f - static_cast<float>(threadIdx.x + chain) / kSpecialThreads;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int chain = 0; chain < kSpecialChains; ++chain)
      asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(value[chain]));
  }
  float sum = 0;
#pragma unroll
  for (int chain = 0; chain < kSpecialChains; ++chain) sum += value[chain];
  if (sum < 0) *out = sum;  // never: exponentials are positive
}

__global__ void empty() {}

}  // namespace

void launch_hold(HoldFlags* device_flags, std::uint32_t ticket, std::uint64_t limit_ns, Stream stream) {
  hold<<<1, 1, 0, stream>>>(device_flags, ticket, limit_ns);
  TWINBENCH_CUDA_CHECK(cudaGetLastError());
}

void launch_clock_stamp(ClockStamp* stamp, int multiprocessors, Stream stream) {
  stamp_clocks<<<4 * multiprocessors, 1, 0, stream>>>(stamp);
  TWINBENCH_CUDA_CHECK(cudaGetLastError());
}

void launch_chain_walk(const std::uint32_t* chain, int lines, std::uint32_t* end, Stream stream) {
  walk_chain<<<1, 1, 0, stream>>>(chain, lines, end);
  TWINBENCH_CUDA_CHECK(cudaGetLastError());
}

void launch_read(const void* memory, std::size_t bytes, int multiprocessors, std::uint32_t* end, Stream stream) {
  read_all<<<kReadBlocks * multiprocessors, kReadThreads, 0, stream>>>(static_cast<const uint4*>(memory),
                                                                       bytes / sizeof(uint4), end);
  TWINBENCH_CUDA_CHECK(cudaGetLastError());
}

void launch_special_functions(float* out, int blocks, int rounds, Stream stream) {
  special<<<blocks, kSpecialThreads, 0, stream>>>(out, rounds);
  TWINBENCH_CUDA_CHECK(cudaGetLastError());
}

double special_functions(int blocks, int rounds) {
  return static_cast<double>(blocks) * kSpecialThreads * kSpecialChains * rounds;
}

void launch_empty(Stream stream) {
  empty<<<1, 1, 0, stream>>>();
  TWINBENCH_CUDA_CHECK(cudaGetLastError());
}

}  // namespace twinbench::cuda
