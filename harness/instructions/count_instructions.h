// Instructions of one steady run of a cell, counted by Callgrind: no clock, so no noise, and padding is seen anywhere.
#pragma once

#include <cstdint>
#include <string>

#include "harness/instructions/instruction_counts.h"
#include "src/registry.h"

namespace twinbench {

// Whether this process runs under Callgrind, and with which folder for its dumps.
bool under_callgrind();

// In a process under Callgrind (see run_under_callgrind), started without instrumentation and collection. What it
// counted before changes little (instruction_pins.cpp). One thread. Covers run() and outputs(), after one run that is
// not counted (of a small run the lesser of two), and two more on data never seen. Throws Error(kInternal) where this
// process is not under Callgrind.
InstructionCounts count_instructions(const Cell& cell, std::uint64_t seed);

}  // namespace twinbench
