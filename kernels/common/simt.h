// The SIMT layer: a CUDA kernel is written once, compiled by nvcc for the GPU and by g++ for a checked run on the host.
//
// HOW TO WRITE A KERNEL. Three pieces, all torch-free; complete example, a row softmax (one block a row):
//
//   // kernels/demo/row_softmax/arguments.h: what it takes, filled by name
//   struct RowSoftmaxArguments {
//     DesignatedOnly designated = DesignatedOnly();  // {input, output, 3} does not compile
//     const float* input = nullptr;                  // [rows, columns], row-major
//     float* output = nullptr;
//     int columns = 0;
//   };
//   // kernels/demo/row_softmax/kernel.h: the kernel, a stateless function object over *any* block context
//   struct RowSoftmax {
//     static constexpr int kMaxThreads = 256;        // required: the block size, which is also the launch bound
//     // Required with dynamic shared memory: its bytes at the documents' sizes, for the pinned occupancy.
//     static std::int64_t documented_shared_bytes() { return 768 * sizeof(float); }
//     template <class Block>
//     TWINBENCH_DEVICE void operator()(Block& block, const RowSoftmaxArguments& a) const {
//       const float* row = a.input + std::int64_t{block.index().x} * a.columns;
//       float* out = a.output + std::int64_t{block.index().x} * a.columns;
//       auto staged = simt::dynamic_shared<float>(block);               // a.columns floats
//       float top = -INFINITY;
//       for (int c = block.thread().x; c < a.columns; c += block.size().x) {
//         const float value = row[c];
//         staged[c] = value;
//         top = value > top ? value : top;
//       }
//       top = simt::block_max(block, top, -INFINITY);                   // holds its own barriers
//       float sum = 0;
//       for (int c = block.thread().x; c < a.columns; c += block.size().x) {
//         const float e = kernels::exp(staged[c] - top);                // each thread reads what it wrote: no barrier
//         staged[c] = e;
//         sum += e;
//       }
//       sum = simt::block_sum(block, sum);
//       for (int c = block.thread().x; c < a.columns; c += block.size().x) out[c] = staged[c] / sum;
//     }
//   };
//   // kernels/demo/row_softmax/launch.cu: the launcher, declared in arguments.h
//   #include "kernels/common/simt_device.h"
//   void launch_row_softmax(const RowSoftmaxArguments& a, int rows, Stream stream) {
//     simt::launch(RowSoftmax{}, simt::grid(rows), 256, a.columns * sizeof(float), stream, a);  // 0 launches nothing
//   }
//   // kernels/demo/row_softmax/kernel_test.cpp: runs it on the host, in every order, and checks the result
//   #include "harness/simt/kernel_testing.h"         // library twinbench_simt
//   const simt::Buffer in(simt::spread(rows * columns, 1)), out(rows * columns);  // one element too far is a finding
//   for (simt::Order order : simt::kAllOrders) {
//     simt::run_clean(RowSoftmax{}, rows, 256, order,
//                     RowSoftmaxArguments{.input = in.data(), .output = out.data(), .columns = columns},
//                     columns * sizeof(float));
//     simt::expect_close(out, expected, 1e-6);
//   }
//
// RULES the host run enforces: every thread reaches every barrier (so: no early return before one, guard the work
// instead); no shared word is read before it is written; two threads touch a shared word only with a barrier between
// (inside a warp also warp_barrier; a shuffle orders no memory), unless both are atomic; shuffle and ballot masks name
// exactly the threads that take part; shared memory stays within 99 KB. Rules for you: write `float v = tile[i]`, never
// `auto v = tile[i]` (on the host that is a reference); shared elements are trivially copyable; two shared arrays of
// one kernel with equal type and size need different slot numbers (0, 1, ...; negative
// ones are taken by the reductions); compute indices that can pass 2^31 in std::int64_t (global_index does).
#pragma once

#include <cstdint>

#include "src/common/host_device.h"

// Marks kernels and functions that take a block context. TWINBENCH_UNROLL unrolls the next loop on the device only.
#if defined(__CUDACC__)
#define TWINBENCH_DEVICE __device__ __forceinline__
#define TWINBENCH_UNROLL _Pragma("unroll")
#else
#define TWINBENCH_DEVICE inline
#define TWINBENCH_UNROLL
#endif

namespace twinbench::kernels::simt {

constexpr int kWarpSize = 32;
constexpr std::uint32_t kFullMask = 0xffffffffu;
constexpr int kMaxSharedBytes = 99 * 1024;  // the smaller of sm_90 (227 KB) and sm_120 (99 KB)

// A position in, or the size of, a block or grid.
struct Index3 {
  unsigned x, y, z;
};

// What every block context offers (DeviceBlock in simt_device.h, HostBlock in harness/simt/host_block.h):
//   Index3 thread(), index(), size(), grid()          threadIdx, blockIdx, blockDim, gridDim
//   void barrier()                                    __syncthreads
//   void warp_barrier(mask)                           __syncwarp, orders shared memory among the named lanes
//   T shuffle_down(value, delta, mask), shuffle_xor(value, lanes, mask), shuffle_index(value, lane, mask)
//   std::uint32_t ballot(predicate, mask)
//   void fence()                                      __threadfence
// Masks default to the full warp. The rest are the free functions below, the same text for both.

// Rank of the thread in its block (x fastest), its warp, its lane; threads and warps of a block.
template <class Block>
TWINBENCH_DEVICE int thread_rank(const Block& block) {
  return static_cast<int>(block.thread().x + block.size().x * (block.thread().y + block.size().y * block.thread().z));
}
template <class Block>
TWINBENCH_DEVICE int lane(const Block& block) {
  return thread_rank(block) % kWarpSize;
}
template <class Block>
TWINBENCH_DEVICE int warp(const Block& block) {
  return thread_rank(block) / kWarpSize;
}
template <class Block>
TWINBENCH_DEVICE int thread_count(const Block& block) {
  return static_cast<int>(block.size().x * block.size().y * block.size().z);
}
template <class Block>
TWINBENCH_DEVICE int warp_count(const Block& block) {
  return (thread_count(block) + kWarpSize - 1) / kWarpSize;
}

// x index over the whole grid and number of threads along x, in 64 bits: start and step of a grid-stride loop.
template <class Block>
TWINBENCH_DEVICE std::int64_t global_index(const Block& block) {
  return static_cast<std::int64_t>(block.index().x) * block.size().x + block.thread().x;
}
template <class Block>
TWINBENCH_DEVICE std::int64_t global_count(const Block& block) {
  return static_cast<std::int64_t>(block.grid().x) * block.size().x;
}

// Shared array of kCount elements, the same one for every call with equal T, kCount and kSlot in a block. On the
// device a T*.
template <class T, int kCount, int kSlot = 0, class Block>
TWINBENCH_DEVICE auto shared_array(Block& block) {
  return block.template shared_array<T, kCount, kSlot>();
}

// The launch's dynamic shared memory from byte_offset on (a multiple of alignof(T)), as elements of T.
template <class T, class Block>
TWINBENCH_DEVICE auto dynamic_shared(Block& block, int byte_offset = 0) {
  return block.template dynamic_shared<T>(byte_offset);
}

// Atomic read-modify-write of *where: a global pointer or a position in a shared array (tile + i); returns the old
// value. T: int, unsigned, unsigned long long; add also float, double. The order of float additions is not fixed:
// results differ from run to run in the last bits, so keep atomics off outputs that must be deterministic.
template <class Block, class Pointer, class T>
TWINBENCH_DEVICE T atomic_add(Block& block, Pointer where, T value) {
  return block.atomic_add(where, value);
}
template <class Block, class Pointer, class T>
TWINBENCH_DEVICE T atomic_max(Block& block, Pointer where, T value) {
  return block.atomic_max(where, value);
}

}  // namespace twinbench::kernels::simt

#include "kernels/common/simt_reduce.h"
