// Which cells `twinbench instructions` counts.
#pragma once

#include <vector>

#include "src/registry.h"

namespace twinbench {

// Bytes and FLOPs that a cell declares.
double work_of(const Cell& cell);

// Where a variant's options send it: switches and choices as they are, numbers by whether they are 0, which turns off
// what they are of. Options of the generated inputs send it nowhere. What is written in operators goes all ways in the
// first numeric mode, one in each other: it is the same code.
Options way_of(const Cell& cell);

// What an interpreter of instructions can count in seconds: small cases on the CPU, in which there is something to do.
bool is_countable(const Cell& cell);

// Of these cells those that are counted. Of the small cells on the CPU that differ in sizes, numbers and data only,
// the one with most work that is countable (where an operator is called for each step, less is): the others execute
// the same instructions, fewer of each. Cases whose right answer is constant or empty are not counted. Every
// component, optimized variant and pass has one in each dtype for each way that options send it: a switch, a choice, a
// number that is 0 or is not. What is written in operators, where options do not meet, has the fewest in which each of
// these values is, in the first dtype, and one in each other.
std::vector<Cell> counted_by_instructions(const std::vector<Cell>& cells);

// Of these cells: of each baseline and pass, in the first numeric mode, the timed one with least work. A loop that a
// baseline has at sizes that users run alone is no instruction of any small case.
std::vector<Cell> timed_baselines(const std::vector<Cell>& cells);

}  // namespace twinbench
