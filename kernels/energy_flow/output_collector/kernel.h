// Kernels of energy_flow.output_collector: the map into rows; a layer is energy_flow/common's.
#pragma once

#include "kernels/energy_flow/common/layer_kernel.h"
#include "kernels/energy_flow/output_collector/arguments.h"
#include "kernels/energy_flow/output_collector/math.h"

namespace twinbench::energy_flow::output_collector {

namespace simt = kernels::simt;

constexpr int kMapThreads = 512;

// Grid: a block a row (striding).
struct MapRows {
  static constexpr int kMaxThreads = kMapThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const MapArguments& a) const {
    const int thread = simt::thread_rank(block);
    for (std::int64_t row = block.index().x; row < a.rows; row += block.grid().x) {
      float* const surface = a.surface + row * a.cells;
      for (std::int64_t cell = thread; cell < a.cells; cell += kMapThreads) surface[cell] = 0.0f;
      block.barrier();
      kernels::in_batches<4, std::int64_t>(
          thread, kMapThreads, a.entries, [&](std::int64_t i) { return a.cell[row * a.entries + i]; },
          [&](std::int64_t i, std::int64_t cell) {
            if (is_entry(cell, a.cells))
              surface[cell] = cell_operand(a.energy[row * a.entries + i], a.cell_weight[cell], a.round);
          });
    }
  }
};

constexpr int kThreads = kLayerThreads;

struct Layer : LayerAs<float, 4> {};
struct LayerBfloat : LayerAs<std::uint16_t, 4> {};
struct LayerAnyWidth : LayerAs<float, 1> {};
struct LayerBfloatAnyWidth : LayerAs<std::uint16_t, 1> {};

}  // namespace twinbench::energy_flow::output_collector
