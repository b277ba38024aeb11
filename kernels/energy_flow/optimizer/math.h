// Arithmetic of energy_flow.optimizer: in energy_flow/common, where the training step takes it too.
#pragma once

#include "kernels/energy_flow/common/window_end.h"
