// Instructions of one steady run of a cell.
#pragma once

#include <cstdint>

namespace twinbench {

struct InstructionCounts {
  std::int64_t total = 0;
  // Of them in the program's own code and in the C library where that calls it: the variant's own loops, and what
  // calling operators costs it. In a baseline, which is written in operators, anything more is padding.
  std::int64_t own = 0;
  // Of a run on contents never seen, and of the next one on the same: what a run does follows from these alone. -1:
  // nothing changes under a set-up, or it is no optimized variant's. Not pinned.
  std::int64_t unseen = -1, seen = -1;
};

}  // namespace twinbench
