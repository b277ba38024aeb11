// The placement's kernels, written once for the GPU and for the checked run on the host: a thread a flow, and in the
// backward pass a thread a cell. Positions are computed element by element: neighbouring lanes store neighbours.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/energy_flow/flow_placement/arguments.h"

namespace twinbench::energy_flow::flow_placement {

namespace simt = kernels::simt;

// Grid: (pieces of kThreads of a sample's flows, samples).
struct Place {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ForwardArguments<float>& a) const {
    const Lattice& l = a.lattice;
    const std::int32_t first = static_cast<std::int32_t>(block.index().x) * kThreads, thread = simt::thread_rank(block);
    const std::int32_t count = l.placed - first < kThreads ? l.placed - first : kThreads, cell = first + thread;
    const float depth = start_depth(l.depth);
    for (std::int64_t sample = block.index().y; sample < l.samples; sample += block.grid().y) {
      const std::int64_t flow = sample * l.placed + cell;
      if (thread < count) {
        a.energy[flow] = a.surface[sample * l.cells() + cell];
        a.sample[flow] = static_cast<std::int32_t>(sample);
        a.local_id[flow] = cell;
        a.uid[flow] = flow_uid(a.sample_key[sample], cell);
      }
      float* const rows = a.position + 3 * (sample * l.placed + first);
      TWINBENCH_UNROLL
      for (int part = 0; part < 3; ++part) {
        const int i = thread + part * kThreads, axis = i % 3;
        if (i >= 3 * count) continue;
        const std::int32_t own = first + i / 3, y = own / l.width, x = own - y * l.width;
        rows[i] = axis == 2 ? depth : normalized(axis == 0 ? x : y, (axis == 0 ? l.width : l.height) - 1);
      }
    }
  }
};

// Grid: (pieces of kThreads of a sample's cells, samples). Cells whose flow was not admitted have no gradient.
struct PlaceBack {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BackwardArguments<float>& a) const {
    const Lattice& l = a.lattice;
    const std::int32_t cell = static_cast<std::int32_t>(block.index().x) * kThreads + simt::thread_rank(block);
    if (cell >= l.cells()) return;
    for (std::int64_t sample = block.index().y; sample < l.samples; sample += block.grid().y)
      a.grad_surface[sample * l.cells() + cell] = cell < l.placed ? a.grad_energy[sample * l.placed + cell] : 0.0f;
  }
};

}  // namespace twinbench::energy_flow::flow_placement
