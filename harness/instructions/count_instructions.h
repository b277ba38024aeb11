// Instructions of one steady run of a cell, counted by Callgrind: no clock, so no noise, and padding is seen anywhere.
#pragma once

#include <cstdint>
#include <string>

#include "src/registry.h"

namespace twinbench {

struct InstructionCounts {
  std::int64_t total = 0;
  // Of them outside every library operator: the variant's own loops, and what calling operators costs it. In a
  // baseline, which is written in operators, anything more is padding.
  std::int64_t outside_operators = 0;
};

// Whether this process runs under Callgrind, and with which folder for its dumps.
bool under_callgrind();

// In a process of its own under Callgrind (see run_under_callgrind), started without instrumentation: the forked child
// of a warmed parent, so that what was counted before changes nothing. One thread. Covers run() and outputs(), after
// one run that is not counted. Throws Error(kInternal) where this process is not under Callgrind.
InstructionCounts count_instructions(const Cell& cell, std::uint64_t seed);

}  // namespace twinbench
