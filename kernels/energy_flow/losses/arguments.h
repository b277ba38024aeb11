// The launcher of energy_flow.losses' kernel. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include "kernels/energy_flow/losses/math.h"

namespace twinbench::energy_flow::losses {

// One kernel. Sets how many blocks take each pair; `partial` has kMostLossBlocks places for either. Throws
// CudaError if the launch is refused.
void launch(SurfaceLossArguments arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::losses
