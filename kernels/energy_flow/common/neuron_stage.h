// How the simple neuron's kernels divide their work (C06): warps of four flows, and what a warp stages. In the
// namespace of the component that specifies it; the whole forward takes it too.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/neuron_layout.h"

namespace twinbench::energy_flow::simple_neuron {

constexpr int kNeuronThreads = 128;
constexpr int kWarps = 4;
constexpr int kFlowsPerWarp = 4;  // one weight read serves four flows
constexpr int kFlowsPerBlock = kWarps * kFlowsPerWarp;
constexpr std::int64_t kMostForwardBlocks = 1360;  // eight on each of 170 multiprocessors: all resident at once

TWINBENCH_HOST_DEVICE std::int64_t groups_of(std::int64_t flows) {
  return (flows + kFlowsPerBlock - 1) / kFlowsPerBlock;
}
// Blocks that take equally many groups, give or take one.
TWINBENCH_HOST_DEVICE std::int64_t forward_blocks(std::int64_t flows) {
  const std::int64_t groups = groups_of(flows), each = (groups + kMostForwardBlocks - 1) / kMostForwardBlocks;
  return each > 0 ? (groups + each - 1) / each : 0;
}
// Rows of four flows' values that one warp stages; every row of a hidden layer belongs to the lane channel % 32 until a
// barrier.
struct Stage {
  int hidden_channels = 0, outputs = 0;
  TWINBENCH_HOST_DEVICE int position() const { return 0; }                   // [3]
  TWINBENCH_HOST_DEVICE int state() const { return 3; }                      // [4]
  TWINBENCH_HOST_DEVICE int hidden(int layer) const { return wide(layer); }  // [hidden], likewise below
  TWINBENCH_HOST_DEVICE int input(int layer) const { return layer == 0 ? state() : hidden(0); }
  TWINBENCH_HOST_DEVICE int forward_rows() const { return wide(2); }
  // Backward only.
  TWINBENCH_HOST_DEVICE int normal(int layer) const { return wide(2 + layer); }
  TWINBENCH_HOST_DEVICE int before(int layer) const { return wide(4 + layer); }    // gradient before the gain
  TWINBENCH_HOST_DEVICE int gradient(int layer) const { return wide(6 + layer); }  // of the product
  TWINBENCH_HOST_DEVICE int features() const { return wide(8); }                   // [outputs], gradient
  TWINBENCH_HOST_DEVICE int coordinates() const { return features() + outputs; }   // [4], gradient of the state
  TWINBENCH_HOST_DEVICE int backward_rows() const { return coordinates() + 4; }

 private:
  TWINBENCH_HOST_DEVICE int wide(int index) const { return 7 + index * hidden_channels; }
};

// Dynamic shared memory in bytes; a launch needs at most simt::kMaxSharedBytes.
TWINBENCH_HOST_DEVICE std::int64_t forward_shared_bytes(const Layout& layout) {
  return std::int64_t{4} * layout.padded() +
         std::int64_t{16} * kWarps * Stage{layout.hidden, layout.outputs}.forward_rows();
}

constexpr std::int64_t kMostBackwardBlocks = 256;  // fills either chip; more would only load the weights more often
// Blocks that share the sums of the weight gradients: a function of the flows alone, so that the sums are reproducible.
TWINBENCH_HOST_DEVICE std::int64_t backward_blocks(std::int64_t flows) {
  return groups_of(flows) < kMostBackwardBlocks ? groups_of(flows) : kMostBackwardBlocks;
}

// Dynamic shared memory of the backward kernel, in floats: packed weights, packed sums, the second and last matrix as
// [out][in] (so that lanes that own inputs read neighbours), then the stages of all warps. Rows of [out][in] have an
// odd length: 32 lanes that turn a row into a column then meet 32 banks.
struct BackwardShared {
  Layout layout;
  TWINBENCH_HOST_DEVICE int row() const { return layout.hidden | 1; }
  TWINBENCH_HOST_DEVICE int sums() const { return layout.padded(); }
  TWINBENCH_HOST_DEVICE int weight_1() const { return 2 * layout.padded(); }
  TWINBENCH_HOST_DEVICE int weight_out() const { return weight_1() + layout.hidden * row(); }
  TWINBENCH_HOST_DEVICE int stages() const { return (weight_out() + layout.outputs * row() + 3) / 4 * 4; }
};

// Dynamic shared memory in bytes; see forward_shared_bytes.
TWINBENCH_HOST_DEVICE std::int64_t backward_shared_bytes(const Layout& layout) {
  return std::int64_t{4} * BackwardShared{layout}.stages() +
         std::int64_t{16} * kWarps * Stage{layout.hidden, layout.outputs}.backward_rows();
}

}  // namespace twinbench::energy_flow::simple_neuron
