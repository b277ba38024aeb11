// Arguments and launchers of energy_flow.optimizer's kernels: in energy_flow/common, where the training step takes them
// too.
#pragma once

#include "kernels/energy_flow/common/window_end_arguments.h"
