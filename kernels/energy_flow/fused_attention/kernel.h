// The kernels of fused_attention: those of every attention (kernels/energy_flow/common), by this component's names.
#pragma once

#include "kernels/energy_flow/common/attention_back_kernel.h"
#include "kernels/energy_flow/common/attention_kernel.h"
#include "kernels/energy_flow/fused_attention/arguments.h"
#include "kernels/energy_flow/fused_attention/math.h"

namespace twinbench::energy_flow::fused_attention {

struct Forward : AttentionForward {};
struct QueriesBack : AttentionQueriesBack {};
struct KeysBack : AttentionKeysBack {};

}  // namespace twinbench::energy_flow::fused_attention
