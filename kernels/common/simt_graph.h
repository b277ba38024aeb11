// A loop whose end the device decides: the body of a graph's conditional node, run again while a kernel in it says so.
//
//   const LoopGraph loop(stream, [&](LoopCondition more, Stream on) { launch_step(arguments, more, on); });
//   loop.launch(stream);
//   ... in the kernel, by one thread of the grid:  set_condition(block, a.more, error > limit);
//
// The class is in kernels/common/simt_loop_graph.h. On the host the body is run turn by turn; a turn that sets no
// condition, one that sets two different ones, and a loop without an end are errors.
#pragma once

#include "kernels/common/simt.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace twinbench::kernels::simt {

#if defined(__CUDACC__) && !defined(TWINBENCH_SIMT)
using LoopCondition = cudaGraphConditionalHandle;
#else
struct HostCondition;
using LoopCondition = HostCondition*;
#endif

// Whether the body is run once more. One thread of the grid calls, in every turn.
template <class Block>
TWINBENCH_DEVICE void set_condition(Block& block, LoopCondition condition, bool more) {
#if defined(__CUDACC__)
  cudaGraphSetConditional(condition, more ? 1u : 0u);
#else
  host_set_condition(block, condition, more);
#endif
}

}  // namespace twinbench::kernels::simt
