// One element of a pack of parameters, from the arena in which an optimizer changes them. Host and device.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow {

// By place and one; 0: none. Less than 0: rounded to bf16, as an operand.
TWINBENCH_HOST_DEVICE float element_of_arena(const float* arena, std::int32_t place) {
  return place > 0 ? arena[place - 1] : place < 0 ? kernels::round_to_bf16(arena[-place - 1]) : 0.0f;
}

// The sum of two; what was there where neither names one.
TWINBENCH_HOST_DEVICE float pack_element(const float* arena, std::int32_t first, std::int32_t second, float was) {
  return first == 0 && second == 0 ? was : element_of_arena(arena, first) + element_of_arena(arena, second);
}

}  // namespace twinbench::energy_flow
