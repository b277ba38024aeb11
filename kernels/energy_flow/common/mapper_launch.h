// Launchers of the mapper's kernels (C04) as the whole forward has them, in the namespace that had them first; the
// training step takes them too. No CUDA headers: optimized/ stays host-compiled.
#pragma once

#include "kernels/energy_flow/common/layer_arguments.h"

namespace twinbench::energy_flow::flow_forward {

// One kernel each. Throw CudaError if the launch is refused.
void launch_mapper_layer(const output_collector::LayerArguments& layer, kernels::Stream stream);
void launch_mapper_surface(const output_collector::LayerArguments& layer, kernels::Stream stream);

}  // namespace twinbench::energy_flow::flow_forward
