// Arguments and launchers of the whole backward pass's own kernels: in energy_flow/common, where the pass in two halves
// takes them.
#pragma once

#include "kernels/energy_flow/common/flow_back_arguments.h"
