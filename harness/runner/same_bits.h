// Products whose bits do not hang on where their operands lie.
#pragma once

namespace twinbench {

// MKL's do: a sum of the same numbers may come out otherwise where they begin at another place of a cache line, as they
// do in blocks that end at a guard page. Asks for MKL_CBWR with STRICT, which has them always alike, unless the
// environment says otherwise; before MKL's first call, which is when it looks. For checks of bits: it may cost time.
void ask_for_same_bits();

}  // namespace twinbench
