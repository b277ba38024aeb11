// The kernel of energy_flow.losses, four values at a time where all rows allow it, else one.
#pragma once

#include "kernels/energy_flow/common/surface_losses_kernel.h"
#include "kernels/energy_flow/losses/arguments.h"

namespace twinbench::energy_flow::losses {

namespace simt = kernels::simt;

struct SurfaceLosses : SurfaceLossesAs<4> {};
struct SurfaceLossesAnyWidth : SurfaceLossesAs<1> {};

}  // namespace twinbench::energy_flow::losses
