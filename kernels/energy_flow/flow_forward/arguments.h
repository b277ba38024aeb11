// Launchers of the whole forward's kernels (C16) that it alone has: its mapper. Those of its steps, and what they take,
// are in energy_flow/common. No CUDA headers: optimized/ stays host-compiled.
#pragma once

#include "kernels/energy_flow/common/flow_arguments.h"
#include "kernels/energy_flow/common/layer_arguments.h"

namespace twinbench::energy_flow::flow_forward {

// One kernel each. Throw CudaError if the launch is refused. Nothing to do: nothing is launched.
void launch_mapper_layer(const output_collector::LayerArguments& layer, kernels::Stream stream);
void launch_mapper_surface(const output_collector::LayerArguments& layer, kernels::Stream stream);

}  // namespace twinbench::energy_flow::flow_forward
