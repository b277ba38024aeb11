// Launchers of the whole forward's kernels (C16): its mapper's and its steps' are in energy_flow/common, where others
// take them too. No CUDA headers: optimized/ stays host-compiled.
#pragma once

#include "kernels/energy_flow/common/flow_arguments.h"
#include "kernels/energy_flow/common/mapper_launch.h"
