// A layer's bias, GELU and normalisation over rows, on the CPU.
#pragma once

#include <cstdint>

#include "kernels/common/rows.h"
#include "src/common/cpu_clones.h"

namespace twinbench {

template <class Real>
TWINBENCH_CPU_CLONES static void activate_rows(const kernels::ActivationLayer<Real>& layer, std::int64_t begin,
                                               std::int64_t end, bool round) {
  for (std::int64_t row = begin; row < end; ++row) kernels::activation_row(layer, row, round);
}

}  // namespace twinbench
