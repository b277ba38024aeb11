// Arguments and launchers of sem.selective_scan's kernels. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/common/grid.h"

namespace twinbench::sem::selective_scan {

constexpr int kThreads = 128;                // of a block, a state each
constexpr int kSlab = kThreads;              // states that a block takes at once
constexpr int kChannels = 16;                // channels that a thread takes at once
constexpr int kFewestChunk = 64;             // steps: less is spent in starting blocks
constexpr std::int64_t kFewestBlocks = 680;  // four on each multiprocessor of the larger card

struct Shape {
  int batch = 0, steps = 0, groups = 0, width = 0, states = 0;

  TWINBENCH_HOST_DEVICE std::int64_t items() const { return std::int64_t{batch} * groups; }
  // Whether a block's states and channels are all taken at once; then they stay in registers and shared memory.
  TWINBENCH_HOST_DEVICE bool at_once() const { return width <= kChannels && states <= kSlab; }
  TWINBENCH_HOST_DEVICE int tile_steps() const { return at_once() ? 16 : 8; }
  TWINBENCH_HOST_DEVICE int tiles() const { return (steps + tile_steps() - 1) / tile_steps(); }
};

// Steps of a chunk: all of them where batch items and groups fill the chip, else as few as fill it.
inline int chunk_of(const Shape& shape) {
  const std::int64_t chunks = kernels::blocks_of(kFewestBlocks, shape.items() > 0 ? shape.items() : 1);
  const std::int64_t even = kernels::blocks_of(kernels::blocks_of(shape.steps, chunks), 16) * 16;
  return static_cast<int>(even > kFewestChunk ? even : kFewestChunk);
}

// Complex tensors are two planes; all contiguous.
struct ScanArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Shape shape = {};
  int chunk = 1, chunks = 1;                 // steps of a chunk, chunks of a sequence
  const float* input = nullptr;              // [2, batch, steps, groups, width]
  const float* a_raw = nullptr;              // [groups, states]
  const float* a_phase = nullptr;            // [groups, states]
  const float* input_projection = nullptr;   // [2, states, width]
  const float* output_projection = nullptr;  // [2, width, states]
  const float* dt_weight = nullptr;          // [2, 2 * width]
  const float* dt_bias = nullptr;            // [2]
  float* output = nullptr;                   // [2, batch, steps, groups, width]
  float* largest_state = nullptr;            // [batch]
  // Between kernels.
  float* ends = nullptr;         // [items, chunks, 4, states]: product of decays, and the state that began with nothing
  float* largest = nullptr;      // [items, chunks]: squares
  unsigned* finished = nullptr;  // [batch], 0 between launches
  float* starts = nullptr;       // [items, tiles, 2, states]: backward, the state before every tile
};

// Two kernels, or one where there is one chunk. All launchers throw CudaError if a launch is refused.
void launch_scan(const ScanArguments& arguments, kernels::Stream stream);

// Backward: the gradients of the input, and every item's share of those of the parameters, to be added up in order.
struct BackwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  ScanArguments scan = {};             // one chunk; with starts, without output and what belongs to it
  const float* grad_output = nullptr;  // as the output
  float* grad_input = nullptr;         // as the input
  float* of_decays = nullptr;          // [batch, 2, groups, states]: of a_raw, then of a_phase
  // [items, shared_stride]: [2, states, width] of the input projection, [2, width, states] of the output projection,
  // [2, 2 * width] of dt_weight, [2] of dt_bias; zeros up to the stride.
  float* of_shared = nullptr;
  std::int32_t shared_stride = 0;
  float* decay_sums = nullptr;   // [2, groups, states]
  float* shared_sums = nullptr;  // [shared_stride]
};
TWINBENCH_HOST_DEVICE std::int32_t shared_size(const Shape& shape) {
  return 4 * shape.states * shape.width + 4 * shape.width + 2;
}
// Two kernels, and two that add up.
void launch_backward(const BackwardArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::sem::selective_scan
