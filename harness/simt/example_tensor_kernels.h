// Small correct kernels over the tensor-core and asynchronous-copy primitives: controls of their tests, and the pairs
// whose cost is compared with hand-written CUDA.
#pragma once

#include "kernels/common/simt_async.h"
#include "kernels/common/simt_mma.h"

namespace twinbench::kernels::simt::examples {

// sums [16, 8] = left [16, inner] * right [8, inner]^T, bf16 pairs along `inner` in words. One warp.
struct TileProductArguments {
  const std::uint32_t* left;
  const std::uint32_t* right;
  float* sums;
  int inner;  // a multiple of 16
};
struct TileProduct {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TileProductArguments& a) const {
    const int thread = static_cast<int>(block.thread().x), group = thread / 4, pair = thread % 4, words = a.inner / 2;
    const std::uint32_t* left = a.left + group * words + pair;
    const std::uint32_t* right = a.right + group * words + pair;
    TileSum sum{};
    for (int k = 0; k < words; k += 8)
      multiply_bf16(block, sum, LeftTile{{left[k], left[8 * words + k], left[k + 4], left[8 * words + k + 4]}},
                    RightTile{{right[k], right[k + 4]}});
    float* to = a.sums + group * 8 + 2 * pair;
    to[0] = sum.of[0];
    to[1] = sum.of[1];
    to[64] = sum.of[2];
    to[65] = sum.of[3];
  }
};

// to [4, 32] = four 8 x 8 matrices of bf16 that lie one below the other in from [32, 8], as ldmatrix hands them out.
struct MatrixLoadArguments {
  const std::uint32_t* from;  // [32, 4] words
  std::uint32_t* to;
};
struct MatrixLoad {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const MatrixLoadArguments& a) const {
    auto tile = dynamic_shared<std::uint32_t>(block);
    const int rank = static_cast<int>(block.thread().x);
    for (int i = 0; i < 4; ++i) tile[32 * i + rank] = a.from[32 * i + rank];
    block.warp_barrier();
    std::uint32_t words[4];
    load_matrices(block, tile + 4 * rank, words);
    for (int i = 0; i < 4; ++i) a.to[32 * i + rank] = words[i];
  }
};

// Tiles of 256 values passed through shared memory, a block each: a thread stores what others copied.
struct AsyncPassArguments {
  const float* from;  // [grid, 256]
  float* to;
};
struct AsyncPass {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const AsyncPassArguments& a) const {
    auto tile = dynamic_shared<float>(block);
    const int thread = static_cast<int>(block.thread().x);
    const float* from = a.from + 256 * static_cast<std::int64_t>(block.index().x);
    float* to = a.to + 256 * static_cast<std::int64_t>(block.index().x);
    async_copy<16>(block, tile + 4 * thread, from + 4 * thread);
    async_commit(block);
    async_wait<0>(block);
    block.barrier();
    TWINBENCH_UNROLL
    for (int i = 0; i < 4; ++i) to[64 * i + thread] = tile[64 * i + thread];
  }
};

// sums[thread] = sum over tiles of from[tile][reversed thread]: two buffers, the next tile under way meanwhile.
struct AsyncSumArguments {
  const float* from;  // [tiles, 256]
  float* sums;        // [256]
  int tiles;
};
struct AsyncSum {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const AsyncSumArguments& a) const {
    auto tile = dynamic_shared<float>(block);
    const int thread = static_cast<int>(block.thread().x);
    float sum[4] = {};
    async_copy<16>(block, tile + 4 * thread, a.from + 4 * thread);
    async_commit(block);
    for (int t = 0; t < a.tiles; ++t) {
      if (t + 1 < a.tiles)
        async_copy<16>(block, tile + 256 * ((t + 1) % 2) + 4 * thread, a.from + 256 * (t + 1) + 4 * thread);
      async_commit(block);
      async_wait<1>(block);
      block.barrier();
      TWINBENCH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float value = tile[256 * (t % 2) + 255 - 64 * i - thread];
        sum[i] += value;
      }
      block.barrier();
    }
    async_wait<0>(block);
    TWINBENCH_UNROLL
    for (int i = 0; i < 4; ++i) a.sums[64 * i + thread] = sum[i];
  }
};

}  // namespace twinbench::kernels::simt::examples
