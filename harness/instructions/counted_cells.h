// Which cells `twinbench instructions` counts.
#pragma once

#include <vector>

#include "src/registry.h"

namespace twinbench {

// Of the small cells on the CPU that differ in sizes, numbers and data only, the one with most work that is countable
// (where an operator is called for each step, less is): the others execute the same instructions, fewer of each. Cases
// whose right answer is constant or empty are not counted. Every component, optimized variant and pass has one in each
// dtype for each way that options send it: a switch, a choice, a number that is 0 or is not. What is written in
// operators, where options do not meet, has the fewest in which each of these values is, in the first dtype, and one in
// each other.
std::vector<Cell> counted_by_instructions(const std::vector<Cell>& cells);

}  // namespace twinbench
