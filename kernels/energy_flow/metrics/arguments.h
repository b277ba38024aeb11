// The launcher of energy_flow.metrics' kernel. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include "kernels/energy_flow/metrics/math.h"

namespace twinbench::energy_flow::metrics {

// One kernel, a micro-step. Throws CudaError if the launch is refused.
void launch(const RecordArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::metrics
