// Arithmetic of energy_flow.fused_attention (C19), shared by host and device: that of every attention.
#pragma once

#include "kernels/energy_flow/common/attention.h"
