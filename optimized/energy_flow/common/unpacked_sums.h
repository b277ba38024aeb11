// Where each parameter's gradient lies among the sums of the way back on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "optimized/energy_flow/common/tile_gradients.h"

namespace twinbench::energy_flow::flow_forward {

// Of vectors kept as [channels][kLanes] sums: to [channels].
using OfLanes = std::function<at::Tensor(const at::Tensor&)>;
at::Tensor lane_sums(const at::Tensor& of);

// From sums [layout.size] to grad_<parameter> of the results, of whatever type both have.
void unpack_sums(const at::Tensor& sums, const GradientLayout& layout, const Parameters& parameters,
                 const NamedTensors& results, const OfLanes& of_lanes = lane_sums);

}  // namespace twinbench::energy_flow::flow_forward
