// More atomics of the SIMT layer: largest float, exchange, compare and swap. `where` as for atomic_add: a global
// pointer or a position in a shared array. Each returns the old value.
#pragma once

#include "kernels/common/float_bits.h"
#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

// *where = the larger of both. Neither may be NaN. Equal bits in any order of the threads, unlike a sum.
template <class Block, class Pointer>
TWINBENCH_DEVICE float atomic_max_float(Block& block, Pointer where, float value) {
#if defined(__CUDACC__)
  // As integers floats that are not negative grow as themselves, negative ones the other way round.
  const bool negative = (bits_of(value) >> 31) != 0;
  return negative ? __uint_as_float(atomicMin(reinterpret_cast<unsigned*>(where), bits_of(value)))
                  : __int_as_float(atomicMax(reinterpret_cast<int*>(where), static_cast<int>(bits_of(value))));
#else
  return block.atomic_update(where, [value](float old) { return value > old ? value : old; });
#endif
}

// *where = value. T: int, unsigned, unsigned long long, float.
template <class Block, class Pointer, class T>
TWINBENCH_DEVICE T atomic_exchange(Block& block, Pointer where, T value) {
#if defined(__CUDACC__)
  return atomicExch(where, value);
#else
  return block.atomic_update(where, [value](T) { return value; });
#endif
}

// *where = value where it is `expected`. T: int, unsigned, unsigned long long.
template <class Block, class Pointer, class T>
TWINBENCH_DEVICE T atomic_compare_and_swap(Block& block, Pointer where, T expected, T value) {
#if defined(__CUDACC__)
  return atomicCAS(where, expected, value);
#else
  return block.atomic_update(where, [expected, value](T old) { return old == expected ? value : old; });
#endif
}

}  // namespace twinbench::kernels::simt
