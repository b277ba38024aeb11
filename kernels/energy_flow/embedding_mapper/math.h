// Arithmetic of the last layer of energy_flow.embedding_mapper (C04), one surface cell at a time.
#pragma once

#include "kernels/common/math.h"

namespace twinbench::energy_flow::embedding_mapper {

// One surface cell from bounded = tanh(product + bias).
template <class Real>
TWINBENCH_HOST_DEVICE Real cell_energy(Real bounded, Real scale, Real offset, Real cell_offset) {
  return kernels::multiply_add(bounded, scale, offset) + cell_offset;
}

// Gradient of the product in the above.
template <class Real>
TWINBENCH_HOST_DEVICE Real cell_gradient(Real gradient, Real bounded, Real scale) {
  return gradient * scale * kernels::tanh_derivative_from_output(bounded);
}

}  // namespace twinbench::energy_flow::embedding_mapper
