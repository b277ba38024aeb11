// Flow storage's kernel, written once for the GPU and for the checked run on the host: lanes of the first warp take
// a slot each, then all warps the hidden states of those that hold a flow.
#pragma once

#include "kernels/common/vectors.h"
#include "kernels/energy_flow/flow_storage/arguments.h"

namespace twinbench::energy_flow::flow_storage {

namespace simt = kernels::simt;

// Grid: blocks_of(capacity, kSlots).
struct StoreStep {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Step& a) const {
    auto live = simt::shared_array<std::int32_t, kSlots>(block);
    const std::int64_t first = std::int64_t{block.index().x} * kSlots, capacity = a.extents.capacity();
    const int thread = simt::thread_rank(block);
    if (thread < kSlots) live[thread] = first + thread < capacity && store_slot(a, first + thread) ? 1 : 0;
    block.barrier();
    const std::int64_t rows = kSlots * a.extents.layers;
    for (std::int64_t row = simt::warp(block); row < rows; row += simt::warp_count(block)) {
      const std::int32_t here = live[row % kSlots];
      if (here == 0) continue;
      const std::int64_t at = (row / kSlots * capacity + first + row % kSlots) * a.extents.hidden;
      if (kernels::allows_four(a.extents.hidden, a.hidden) && kernels::allows_four(a.extents.hidden, a.storage.hidden))
        copy<4>(block, a, at);
      else
        copy<1>(block, a, at);
    }
  }

 private:
  template <int kWidth, class Block>
  static TWINBENCH_DEVICE void copy(Block& block, const Step& a, std::int64_t at) {
    kernels::in_batches<4, std::int64_t>(
        simt::lane(block), simt::kWarpSize, a.extents.hidden / kWidth,
        [=, from = a.hidden + at](std::int64_t i) { return kernels::load<kWidth>(from + i * kWidth); },
        [&a, at](std::int64_t i, const kernels::Floats<kWidth>& values) {
          kernels::store(a.storage.hidden, at + i * kWidth, values);
        });
  }
};

}  // namespace twinbench::energy_flow::flow_storage
