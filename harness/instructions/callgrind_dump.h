// Reads what Callgrind writes.
#pragma once

#include <cstdint>
#include <string_view>

namespace twinbench {

struct DumpedInstructions {
  std::int64_t total = 0;
  std::int64_t own = 0;  // of them the program's own, and the C library's where the program calls it
};

// Instructions of one dump, those inside the C library's allocator and its waiting for threads left out: how long the
// one searches depends on all that the process did before, so that a change anywhere would move every count; how often
// the other happens depends on which thread comes first. What is allocated the counters pin. The sum of every
// function's own cost lines: the dump's "summary" also holds what was not collected. `program` is the executable's
// path. Throws Error(kBadFile) where there is no cost line.
DumpedInstructions instructions_in(std::string_view dump, std::string_view program);

}  // namespace twinbench
