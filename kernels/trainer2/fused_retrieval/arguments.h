// Arguments and launcher of trainer2.fused_retrieval's kernel. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/common/grid.h"
#include "kernels/trainer2/fused_retrieval/math.h"

namespace twinbench::trainer2::fused_retrieval {

constexpr int kMostAxes = 32, kMostPlanes = 64;
constexpr int kSamples = 8;                  // that share a pass over the bank
constexpr int kMostChunk = 128;              // candidates of a part: 32, 64 or 128
constexpr std::int64_t kFewestBlocks = 340;  // two on each multiprocessor of the larger card

// How the candidates are split. The filled count changes nothing of it, so that one graph serves every filling.
struct Split {
  int chunk = 0;                        // candidates of a part
  int bank_parts = 0, token_parts = 0;  // of a sample
  int tiles = 0;                        // of kSamples samples
  std::int64_t blocks = 0;              // of the grid: the bank's parts of every tile, the tokens' of every sample

  TWINBENCH_HOST_DEVICE int parts() const { return bank_parts + token_parts; }
};

// Parts of as many candidates as leave enough of them to fill the chip.
inline Split split_of(std::int64_t batch, std::int64_t tokens, std::int64_t capacity) {
  Split split;
  split.tiles = static_cast<int>(kernels::blocks_of(batch, kSamples));
  for (int chunk = kMostChunk; chunk >= 32 && split.blocks < kFewestBlocks; chunk /= 2) {
    split.chunk = chunk;
    split.bank_parts = static_cast<int>(kernels::blocks_of(capacity, chunk));
    split.token_parts = static_cast<int>(kernels::blocks_of(tokens, chunk));
    split.blocks = std::int64_t{split.tiles} * split.bank_parts + batch * split.token_parts;
  }
  return split;
}

// All matrices row-major and contiguous.
struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  int batch = 0, tokens = 0, capacity = 0, width = 0, axes = 0, planes = 0, inspected = 0;
  Stored stored = Stored::kFloat;
  float beta = 0;
  const float* query = nullptr;              // [batch, axes]
  const float* curvature = nullptr;          // [batch]
  const float* token_coordinates = nullptr;  // [batch, tokens, axes]
  const float* token_states = nullptr;       // [batch, tokens, width], rounded as stored when they are read
  const float* mask = nullptr;               // [batch, tokens]: a token is valid where it is 1
  const float* bank_coordinates = nullptr;   // [capacity, axes]
  const void* bank_states = nullptr;         // [capacity, width], of kernels: as stored
  const std::int64_t* filled = nullptr;      // [1]: slots below it are valid
  const float* metric = nullptr;             // [axes]
  const float* theta = nullptr;              // [planes]
  const std::int32_t* first_axis = nullptr;  // [planes]
  const std::int32_t* second_axis = nullptr;
  const std::int32_t* of_weights = nullptr;  // [inspected]: candidates whose weights are returned
  float* mix = nullptr;                      // [batch, width]
  float* weights = nullptr;                  // [batch, inspected]
  // Of kernels.
  Split split = {};
  float* heads = nullptr;        // [batch, parts, 4]: least cost, sum, whether any candidate is valid, factor
  float* mixes = nullptr;        // [batch, parts, width]
  float* costs = nullptr;        // [batch, tokens + capacity] where weights are inspected, else null
  unsigned* finished = nullptr;  // [tiles], 0 between launches
};

// One kernel: parts, and in the last block of a tile their sum. Throws CudaError if the launch is refused.
void launch(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::trainer2::fused_retrieval
