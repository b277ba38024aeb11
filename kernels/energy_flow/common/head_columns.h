// The joined first layer of the carrier heads (C08), and how their kernels divide its rows. In the namespace of the
// component that specifies it; the whole forward takes it too.
#pragma once

#include <cstdint>

#include "src/common/host_device.h"

namespace twinbench::energy_flow::carrier_heads {

// Columns of the joined first layer: [energy | displacement | child (1) | padding | gate | padding]; child and gate in
// gate mode only. The padding after the child keeps the gate's columns on 32-byte sectors where the heads' are.
struct Columns {
  std::int32_t energy_width = 0, head_width = 0;
  std::int32_t all = 0;  // length of a row, padding included

  TWINBENCH_HOST_DEVICE std::int32_t displacement() const { return energy_width; }
  TWINBENCH_HOST_DEVICE std::int32_t child() const { return energy_width + head_width; }
  static constexpr std::int32_t kChildColumns = 8;  // padding included
  TWINBENCH_HOST_DEVICE std::int32_t gate() const { return child() + kChildColumns; }
};

// Columns that the kernels take at once: four where every row's and every head's first column is a multiple of four.
// Sums and weights then start at multiples of 16 bytes.
TWINBENCH_HOST_DEVICE int columns_at_once(const Columns& columns) {
  return (columns.all | columns.energy_width | columns.head_width) % 4 == 0 ? 4 : 1;
}
constexpr int kHeadThreads = 256;
constexpr int kFlowsPerBlock = 32;                // a lane each for the scalar rules
constexpr std::int64_t kMostForwardBlocks = 264;  // two on each of an H200's 132 multiprocessors: all resident at once

// Blocks that take equally many groups of flows, give or take one.
TWINBENCH_HOST_DEVICE std::int64_t forward_blocks(std::int64_t flows) {
  const std::int64_t groups = (flows + kFlowsPerBlock - 1) / kFlowsPerBlock,
                     each = (groups + kMostForwardBlocks - 1) / kMostForwardBlocks;
  return each > 0 ? (groups + each - 1) / each : 0;
}
// Dynamic shared memory that holds the bias and the second layers' weights.
TWINBENCH_HOST_DEVICE std::int64_t forward_shared_bytes(const Columns& columns, bool gate) {
  return std::int64_t{4} * (columns.all + columns.energy_width + (gate ? 4 : 3) * std::int64_t{columns.head_width});
}

}  // namespace twinbench::energy_flow::carrier_heads
