// The launcher of energy_flow.losses' kernel: in energy_flow/common, where the training step takes it too.
#pragma once

#include "kernels/energy_flow/common/surface_losses_launch.h"
#include "kernels/energy_flow/losses/math.h"
