// Arithmetic of energy_flow.losses (C23): all of it is energy_flow/common's, which the training step takes too.
#pragma once

#include "kernels/energy_flow/common/surface_losses.h"
