// How the whole backward pass divides its sums over flows: in energy_flow/common, where the training step's pass takes
// them too.
#pragma once

#include "kernels/energy_flow/common/flow_back_sums.h"
