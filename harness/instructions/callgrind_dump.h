// Reads what Callgrind writes.
#pragma once

#include <cstdint>
#include <string_view>

namespace twinbench {

// Instructions of one dump, those inside the C library's allocator left out: how long it searches depends on all that
// the process did before, so that a change anywhere would move every count; what it is asked for, the counters pin. The
// sum of every function's own cost lines: the dump's "summary" also holds what was not collected. Throws
// Error(kBadFile) where there is no cost line.
std::int64_t instructions_in(std::string_view dump);

}  // namespace twinbench
