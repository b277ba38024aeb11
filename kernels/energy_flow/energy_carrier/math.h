// Arithmetic of the energy carrier's gated recurrent unit, one channel of one flow: forward and gradients lie in
// energy_flow/common, where the whole flow's passes take them too.
#pragma once

#include "kernels/energy_flow/common/gru_gradients.h"
