// The kernels of fused_attention: those of every attention (kernels/energy_flow/common), which has tests here.
#pragma once

#include "kernels/energy_flow/common/attention_back_kernel.h"
#include "kernels/energy_flow/common/attention_kernel.h"
#include "kernels/energy_flow/fused_attention/arguments.h"
#include "kernels/energy_flow/fused_attention/math.h"
