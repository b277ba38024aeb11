// Kernels with one planted inefficiency or bug each, and the same work done right.
#pragma once

#include <cstdint>

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt::planted {

struct Arrays {
  const float* in = nullptr;
  float* out = nullptr;
  std::int64_t count = 0;  // elements of `in`
};

// Each thread walks its own stretch of 32 elements: neighbours are 128 bytes apart.
struct UncoalescedWalk {
  static constexpr int kMaxThreads = 256;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    float sum = 0;
    const std::int64_t first = global_index(block) * 32;
    for (std::int64_t i = first; i < first + 32 && i < a.count; ++i) sum += a.in[i];
    a.out[global_index(block)] = sum;
  }
};
// The same sums over elements that neighbours share a sector of.
struct CoalescedWalk {
  static constexpr int kMaxThreads = 256;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    float sum = 0;
    for (std::int64_t i = global_index(block); i < a.count; i += global_count(block)) sum += a.in[i];
    a.out[global_index(block)] = sum;
  }
};

// A warp reads a column of a 32-wide tile: all words lie in one bank. With 33 columns they lie in 32.
template <int kStride>
struct ReadColumn {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    auto tile = shared_array<float, 32 * kStride>(block);
    const int own = lane(block);
    for (int row = 0; row < 32; ++row) tile[row * kStride + own] = a.in[row * 32 + own];
    block.warp_barrier();
    float sum = 0;
    for (int column = 0; column < 32; ++column) sum += tile[own * kStride + column];
    a.out[own] = sum;
  }
};

struct alignas(8) Pair {
  float x, y;
};
// Reads pairs from `offset` elements on: misaligned where that is odd.
struct PairArguments {
  const float* in = nullptr;
  float* out = nullptr;
  int offset = 0;
};
struct ReadPairs {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const PairArguments& a) const {
    const Pair pair = reinterpret_cast<const Pair*>(a.in + a.offset)[lane(block)];
    a.out[lane(block)] = pair.x + pair.y;
  }
};

// All blocks add to one word.
struct MissingAtomic {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    if (lane(block) == 0) a.out[0] = a.out[0] + a.in[block.index().x];
  }
};
struct WithAtomic {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    if (lane(block) == 0) atomic_add(block, a.out, a.in[block.index().x]);
  }
};
// Block n reads what block n - 1 writes in the same launch.
struct ReadsNeighbour {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    const unsigned own = block.index().x;
    if (lane(block) == 0) a.out[own] = own == 0 ? 0.0f : a.out[own - 1] + 1.0f;
  }
};

// Half of each warp takes one branch, half the other, for work that both could do.
struct DividedWarp {
  static constexpr int kMaxThreads = 256;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    const std::int64_t i = global_index(block);
    if (i % 2 == 0) {
      a.out[i] = a.in[i] * 2.0f;
    } else {
      a.out[i] = a.in[i] + 1.0f;
    }
  }
};
struct UndividedWarp {
  static constexpr int kMaxThreads = 256;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    const std::int64_t i = global_index(block);
    const float value = a.in[i];
    a.out[i] = i % 2 == 0 ? value * 2.0f : value + 1.0f;
  }
};

// Reads its input once for the mean and once more for the deviations. (The barrier keeps the second read.)
struct RedundantRead {
  static constexpr int kMaxThreads = 256;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    const int thread = thread_rank(block);
    const float mean = block_sum(block, a.in[thread]) / static_cast<float>(a.count);
    a.out[thread] = a.in[thread] - mean;
  }
};
struct SingleRead {
  static constexpr int kMaxThreads = 256;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    const int thread = thread_rank(block);
    const float value = a.in[thread];
    const float mean = block_sum(block, value) / static_cast<float>(a.count);
    a.out[thread] = value - mean;
  }
};

// Every lane adds to one counter; the other way a warp adds up first.
struct AtomicHotSpot {
  static constexpr int kMaxThreads = 256;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    atomic_add(block, a.out, a.in[global_index(block)]);
  }
};
struct AtomicOnceAWarp {
  static constexpr int kMaxThreads = 256;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arrays& a) const {
    const float sum = warp_sum(block, a.in[global_index(block)]);
    if (lane(block) == 0) atomic_add(block, a.out, sum);
  }
};

}  // namespace twinbench::kernels::simt::planted
