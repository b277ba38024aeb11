// Memory that a card and its host both see.
#pragma once

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

// What was written before is there for whoever sees what is written after, the host among them.
template <class Block>
TWINBENCH_DEVICE void visible_to_host(Block& block) {
#if defined(__CUDA_ARCH__)
  __threadfence_system();
#else
  block.fence();
#endif
}

}  // namespace twinbench::kernels::simt
