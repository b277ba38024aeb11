// Gradient of the last layer of energy_flow.embedding_mapper (C04), one surface cell at a time; the cell itself is in
// energy_flow/common.
#pragma once

#include "kernels/energy_flow/common/surface_cell.h"

namespace twinbench::energy_flow::embedding_mapper {

// Gradient of the product in cell_energy.
template <class Real>
TWINBENCH_HOST_DEVICE Real cell_gradient(Real gradient, Real bounded, Real scale) {
  return gradient * scale * kernels::tanh_derivative_from_output(bounded);
}

}  // namespace twinbench::energy_flow::embedding_mapper
