// A layer's bias, GELU and normalisation over rows, on the CPU, and their way back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/rows.h"
#include "optimized/common/rows.h"
#include "src/common/cpu_clones.h"

namespace twinbench {

template <class Real>
TWINBENCH_CPU_CLONES static void activate_rows(const kernels::ActivationLayer<Real>& layer, std::int64_t begin,
                                               std::int64_t end, bool round) {
  for (std::int64_t row = begin; row < end; ++row) kernels::activation_row(layer, row, round);
}

template <class Real>
TWINBENCH_CPU_CLONES static void activate_backward_rows(const kernels::ActivationLayer<Real>& layer, std::int64_t begin,
                                                        std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) kernels::activation_backward_row(layer, row);
}

// Column sums over the rows, in row order, for columns [begin, end); with `round` grad_product becomes an operand
// there.
template <class Real>
TWINBENCH_CPU_CLONES static void sum_layer_columns(const kernels::ActivationLayer<Real>& layer, std::int64_t begin,
                                                   std::int64_t end, bool round) {
  for (Real* sums : {layer.grad_bias, layer.grad_gain, layer.grad_shift}) std::fill(sums + begin, sums + end, Real(0));
  for (std::int64_t row = 0; row < layer.rows; ++row) {
    const std::int64_t at = row * layer.width;
    Real* product = layer.grad_product.plain + at;
    const Real* __restrict gradient = layer.grad_hidden + at, * __restrict normal = layer.normal + at;
    Real* __restrict gain = layer.grad_gain, * __restrict shift = layer.grad_shift;
    add_row(product + begin, layer.grad_bias + begin, end - begin);
    for (std::int64_t i = begin; i < end; ++i) {
      gain[i] += gradient[i] * normal[i];
      shift[i] += gradient[i];
    }
    if (round) round_in_place(product + begin, end - begin);
  }
}

}  // namespace twinbench
