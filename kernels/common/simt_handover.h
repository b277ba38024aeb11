// The handover by which the last block of a grid to get there finishes what all have begun: fence, count, fence.
#pragma once

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

// True in all threads of the block that calls last of `count` blocks: it reads what the others wrote before their
// calls.
// `counter` is 0 before the launch, and again after it. Every thread of the block calls. Two barriers.
template <class Block>
TWINBENCH_DEVICE bool is_last_block(Block& block, unsigned* counter, unsigned count) {
  auto last = shared_array<unsigned, 1, -3>(block);
  block.barrier();  // all of this block's writes come before the fence
  if (thread_rank(block) == 0) {
    block.fence();
#if defined(__CUDACC__)
    const unsigned before = atomicInc(counter, count - 1);
#else
    const unsigned before =
        block.atomic_update(counter, [count](unsigned old) { return old >= count - 1 ? 0u : old + 1; });
#endif
    block.fence();
    last[0] = before == count - 1 ? 1u : 0u;
  }
  block.barrier();
  const unsigned is_last = last[0];
  return is_last != 0;
}

}  // namespace twinbench::kernels::simt
