// One surface cell of the embedding mapper (C04), of its last layer's product. Host and device. In the namespace of the
// component that specifies it; the whole forward takes it too.
#pragma once

#include "kernels/common/math.h"

namespace twinbench::energy_flow::embedding_mapper {

// One surface cell from bounded = tanh(product + bias).
template <class Real>
TWINBENCH_HOST_DEVICE Real cell_energy(Real bounded, Real scale, Real offset, Real cell_offset) {
  return kernels::multiply_add(bounded, scale, offset) + cell_offset;
}

}  // namespace twinbench::energy_flow::embedding_mapper
