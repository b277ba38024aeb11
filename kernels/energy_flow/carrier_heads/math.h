// Arithmetic of the carrier heads for one flow: forward and gradients lie in energy_flow/common, where the whole flow's
// passes take them too.
#pragma once

#include "kernels/energy_flow/common/heads_gradients.h"
