// Arithmetic of energy_flow.output_collector (C05), shared by host and device: a map's entry; its layers are in
// energy_flow/common.
#pragma once

#include <cstdint>

#include "kernels/common/math.h"

namespace twinbench::energy_flow::output_collector {

// Keys are checked at set-up; what is written there later may not reach beyond the surface.
TWINBENCH_HOST_DEVICE bool is_entry(std::int64_t cell, std::int64_t cells) { return cell >= 0 && cell < cells; }

template <class Real>
TWINBENCH_HOST_DEVICE Real cell_operand(Real energy, Real cell_weight, bool round) {
  const Real value = energy * cell_weight;
  return round ? kernels::round_to_bf16(value) : value;
}

}  // namespace twinbench::energy_flow::output_collector
