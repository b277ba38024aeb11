// Correct kernels whose blocks work together, and the same with one misuse each: for tests and for the compiler.
#pragma once

#include <cstdint>

#include "kernels/common/simt.h"
#include "kernels/common/simt_graph.h"
#include "kernels/common/simt_handover.h"
#include "kernels/common/simt_team.h"

namespace twinbench::kernels::simt::examples {

enum class Misuse { kNone, kNoBarrierBefore, kNoBarrierAfter, kSomeBlocksOnly, kSomeThreadsOnly, kNoFence, kNoBarrier };

struct TeamArguments {
  const float* input = nullptr;  // [blocks, threads]
  float* output = nullptr;       // [blocks]
  float* partial = nullptr;      // [blocks]
  unsigned* counter = nullptr;   // [1], 0
};

// Each block gets the sum over its cluster, read from the other blocks' shared memory.
template <Misuse kMisuse = Misuse::kNone>
struct ClusterSum {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TeamArguments& a) const {
    auto own = shared_array<float, 1>(block);
    const float sum = block_sum(block, a.input[global_index(block)]);
    if (thread_rank(block) == 0) own[0] = sum;
    if constexpr (kMisuse == Misuse::kSomeBlocksOnly) {
      if (cluster_rank(block) == 0) cluster_barrier(block);
    } else if constexpr (kMisuse != Misuse::kNoBarrierBefore) {
      cluster_barrier(block);
    }
    if (thread_rank(block) == 0) {
      float total = 0;
      for (int rank = 0; rank < cluster_size(block); ++rank) {
        auto other = cluster_shared(block, own, rank);
        total += other[0];
      }
      a.output[block.index().x] = total;
    }
    if constexpr (kMisuse != Misuse::kNoBarrierAfter) cluster_barrier(block);
  }
};

// Each block gets the sum over the grid: what the others wrote to global memory, after a barrier of all.
template <Misuse kMisuse = Misuse::kNone>
struct GridSum {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TeamArguments& a) const {
    const float sum = block_sum(block, a.input[global_index(block)]);
    if (thread_rank(block) == 0) a.partial[block.index().x] = sum;
    if constexpr (kMisuse == Misuse::kSomeThreadsOnly) {
      if (thread_rank(block) != 40) grid_barrier(block);
    } else if constexpr (kMisuse != Misuse::kNoBarrier) {
      grid_barrier(block);
    }
    if (thread_rank(block) == 0) {
      float total = 0;
      for (unsigned i = 0; i < block.grid().x; ++i) total += a.partial[i];
      a.output[block.index().x] = total;
    }
  }
};

// The last block to get there adds up what all have written.
template <Misuse kMisuse = Misuse::kNone>
struct LastBlockSum {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TeamArguments& a) const {
    const float sum = block_sum(block, a.input[global_index(block)]);
    if (thread_rank(block) == (kMisuse == Misuse::kNoBarrier ? 40 : 0)) a.partial[block.index().x] = sum;
    bool last = false;
    if constexpr (kMisuse == Misuse::kNone) {
      last = is_last_block(block, a.counter, block.grid().x);
    } else {
      auto flag = shared_array<unsigned, 1>(block);
      if (thread_rank(block) == 0) {
        if constexpr (kMisuse != Misuse::kNoFence) block.fence();
        flag[0] = atomic_add(block, a.counter, 1u);
        block.fence();
      }
      block.barrier();
      last = flag[0] == block.grid().x - 1;
    }
    if (last && thread_rank(block) == 0) {
      float total = 0;
      for (unsigned i = 0; i < block.grid().x; ++i) total += a.partial[i];
      a.output[0] = total;
    }
  }
};

// Halves a value until it is at most 1; the kernel says whether the loop goes on.
struct HalveArguments {
  float* value = nullptr;  // [1]
  LoopCondition more{};
  bool forgets = false, disagrees = false;
};
struct Halve {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const HalveArguments& a) const {
    if (thread_rank(block) == 0) {
      a.value[0] = a.value[0] / 2;
      if (!a.forgets) set_condition(block, a.more, a.value[0] > 1);
    }
    if (a.disagrees && thread_rank(block) == 1) set_condition(block, a.more, a.value[0] <= 1);
  }
};

// Stages bytes in shared memory and writes them back reversed within the block.
struct ByteArguments {
  const std::uint8_t* input = nullptr;  // [threads]
  std::uint8_t* output = nullptr;
  bool races = false;
};
struct ReverseBytes {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ByteArguments& a) const {
    auto fixed = shared_array<std::uint8_t, kMaxThreads>(block);
    auto dynamic = dynamic_shared<std::uint8_t>(block);  // [threads]
    const int own = thread_rank(block), count = thread_count(block);
    const std::uint8_t value = a.input[own];
    fixed[own] = value;
    if (!a.races) block.barrier();
    const std::uint8_t other = fixed[count - 1 - own];
    dynamic[own] = other;
    block.barrier();
    const std::uint8_t staged = dynamic[own];
    a.output[own] = staged;
  }
};

}  // namespace twinbench::kernels::simt::examples
