// Where the whole forward keeps a flow, and the shape of its products' tiles: in energy_flow/common, where the whole
// backward pass takes them too.
#pragma once

#include "kernels/energy_flow/common/flow_slots.h"
