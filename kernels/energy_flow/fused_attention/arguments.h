// Launchers of fused attention. What they take is kernels/energy_flow/common/attention.h. No CUDA headers.
#pragma once

#include "kernels/energy_flow/common/attention.h"

namespace twinbench::energy_flow::fused_attention {

// One kernel; the backward pass two: queries, then keys and values. Throws CudaError if a launch is refused. Without a
// query or key, head or sample nothing is launched.
void launch(const Attention<float>& attention, kernels::Stream stream);
void launch_backward(const Attention<float>& attention, kernels::Stream stream);

}  // namespace twinbench::energy_flow::fused_attention
