// What takes flows to the start of a segment of steps and through it once more (C31): places, energies and ages as they
// were kept, and children that were admitted. Who lives and who is born was decided before and is read. Written once
// for the GPU and for the checked run on the host.
#pragma once

#include "kernels/common/grid.h"
#include "kernels/energy_flow/flow_backward/arguments.h"

namespace twinbench::energy_flow::flow_backward {

namespace simt = kernels::simt;

// Grid: striding_blocks(slots, kElementThreads), a thread a row.
struct KeepStart {
  static constexpr int kMaxThreads = kernels::kElementThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const StartArguments& a) const {
    for (std::int64_t row = simt::global_index(block); row < *a.total; row += simt::global_count(block)) {
      const std::int32_t slot = a.slot[row];
      a.start.x[row] = a.flows.x[slot];
      a.start.y[row] = a.flows.y[slot];
      a.start.z[row] = a.flows.z[slot];
      a.start.energy[row] = a.flows.energy[slot];
      a.start.age[row] = a.flows.age[slot];
    }
  }
};

struct TakeStart {
  static constexpr int kMaxThreads = kernels::kElementThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const StartArguments& a) const {
    for (std::int64_t row = simt::global_index(block); row < *a.total; row += simt::global_count(block)) {
      const std::int32_t slot = a.slot[row];
      a.flows.x[slot] = a.start.x[row];
      a.flows.y[slot] = a.start.y[row];
      a.flows.z[slot] = a.start.z[row];
      a.flows.energy[slot] = a.start.energy[row];
      a.flows.age[slot] = a.start.age[row];
    }
  }
};

struct BearAgain {
  static constexpr int kMaxThreads = kernels::kElementThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BearArguments& a) const {
    for (std::int64_t row = simt::global_index(block); row < *a.tape.total; row += simt::global_count(block)) {
      if (a.tape.requests[row] == 0) continue;
      const std::int32_t first = a.tape.first_child[row], last = first + a.tape.children[row];
      for (std::int32_t slot = first; slot < last; ++slot) {
        a.flows.x[slot] = a.results.x[row];
        a.flows.y[slot] = a.results.y[row];
        a.flows.z[slot] = a.results.z[row];
        a.flows.energy[slot] = a.results.child_energy[row];
        a.flows.age[slot] = 0;
      }
    }
  }
};

}  // namespace twinbench::energy_flow::flow_backward
