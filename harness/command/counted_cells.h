// Which cells `twinbench instructions` counts.
#pragma once

#include <vector>

#include "src/registry.h"

namespace twinbench {

// Of the small cells on the CPU that differ in sizes and data only, the one with the largest inputs: the others execute
// the same instructions, fewer of each. Every component, variant, dtype, pass and set of options has its own.
std::vector<Cell> counted_by_instructions(const std::vector<Cell>& cells);

}  // namespace twinbench
