// The launcher of the losses' kernel (C23), in the namespace that had it first; the training step takes it too. No CUDA
// headers, so that optimized/ stays host-compiled.
#pragma once

#include "kernels/energy_flow/common/surface_losses.h"

namespace twinbench::energy_flow::losses {

// One kernel. Sets how many blocks take each pair; `partial` has kMostLossBlocks places for either. Throws
// CudaError if the launch is refused.
void launch(SurfaceLossArguments arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::losses
