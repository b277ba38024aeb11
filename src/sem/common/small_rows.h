// Rows between zero and the usual: what a solver must still solve, and what it must leave as zeros (sem C05, C07).
#pragma once

#include <cstdint>

namespace twinbench::sem {

// What row `row` of a case with small rows is multiplied with. The right side of every fourth one is so short that its
// square is below 1e-30, where its solution is zero; another fourth is a million times longer and is solved like any
// other, and a third has the intensity that the rotation's floor of 1e-8 is added to.
inline float row_scale(std::int64_t row) {
  constexpr float kScales[] = {1, 1e-11f, 1e-4f, 1e-17f};
  return kScales[row % 4];
}

}  // namespace twinbench::sem
