// Asynchronous copies of the SIMT layer, from global to shared memory past the registers (cp.async).
//
//   async_copy<16>(block, tile + i, from);  ...  async_commit(block);   // a group of copies of this thread
//   async_wait<1>(block);                                               // all groups but the latest one are there
//   block.barrier();                                                    // ... also for other threads
//
// On the host a copy arrives at the wait, and until then nobody has written its destination: reading it is a finding,
// and so is a copy that nobody waited for.
#pragma once

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

// kBytes (4, 8 or 16) bytes from `from` to `to`, a position in a shared array. Both addresses are multiples of kBytes.
template <int kBytes, class Block, class Shared, class T>
TWINBENCH_DEVICE void async_copy(Block& block, Shared to, const T* from) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "the hardware copies 4, 8 or 16 bytes");
#if defined(__CUDACC__)
  const unsigned where = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (kBytes == 16)  // past the first-level cache
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(where), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(where), "l"(from), "n"(kBytes) : "memory");
#else
  host_async_copy<kBytes>(block, to, from, true);
#endif
}

// The same, or zeros where not `valid`: nothing is read then.
template <int kBytes, class Block, class Shared, class T>
TWINBENCH_DEVICE void async_copy_or_zeros(Block& block, Shared to, const T* from, bool valid) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "the hardware copies 4, 8 or 16 bytes");
#if defined(__CUDACC__)
  const unsigned where = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = valid ? kBytes : 0;
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(where), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(where), "l"(from), "n"(kBytes), "r"(bytes)
                 : "memory");
#else
  host_async_copy<kBytes>(block, to, from, valid);
#endif
}

// Ends a group of copies.
template <class Block>
TWINBENCH_DEVICE void async_commit(Block& block) {
#if defined(__CUDACC__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  host_async_commit(block);
#endif
}

// Waits until at most kGroups groups of this thread are under way.
template <int kGroups, class Block>
TWINBENCH_DEVICE void async_wait(Block& block) {
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#else
  host_async_wait(block, kGroups);
#endif
}

}  // namespace twinbench::kernels::simt
