// The variable of MKL, with the widest instructions that the processor has.
#include "harness/runner/same_bits.h"

#include <cstdlib>

namespace twinbench {

void ask_for_same_bits() {
#if defined(__x86_64__)
  setenv("MKL_CBWR", __builtin_cpu_supports("avx512f") ? "AVX512,STRICT" : "AVX2,STRICT", /*overwrite=*/0);
#endif
}

}  // namespace twinbench
