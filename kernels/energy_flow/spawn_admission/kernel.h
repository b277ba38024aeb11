// Spawn admission's kernels, written once for the GPU and for the checked run on the host. Every block of a sample
// scans all of its requests, 5 bytes a slot, and writes what belongs to its own slots, a thread each.
#pragma once

#include "kernels/energy_flow/spawn_admission/arguments.h"

namespace twinbench::energy_flow::spawn_admission {

namespace simt = kernels::simt;

// body(sample, first slot of the block's, how many) for grid (pieces of kThreads slots, samples).
template <class Block, class Body>
TWINBENCH_DEVICE void over_samples(const Block& block, const Extents& extents, Body body) {
  const std::int32_t first = static_cast<std::int32_t>(block.index().x) * kThreads;
  const std::int32_t count = extents.slots - first < kThreads ? extents.slots - first : kThreads;
  for (std::int64_t sample = block.index().y; sample < extents.samples; sample += block.grid().y)
    body(sample, first, count);
}

// Grid: kernels::row_pieces(samples, slots, kThreads).
struct Admit {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ForwardArguments<float>& a) const {
    auto parents = simt::shared_array<std::int32_t, kThreads>(block);  // of the block's slots
    const int thread = simt::thread_rank(block);
    over_samples(block, a.extents, [&](std::int64_t sample, std::int32_t first, std::int32_t count) {
      const std::int64_t rows = a.extents.row(sample, 0), own = rows + first;
      const auto requests = [&](std::int32_t slot) { return a.asking.requests(rows + slot); };
      const std::int32_t created = a.asking.created[sample], free = free_slots(created, a.extents.slots);
      block.barrier();  // whoever still reads the parents of the sample before
      parents[thread] = -1;
      const std::int32_t total = scan_requests<kThreads>(
          block, a.extents.slots, requests, [&](std::int32_t slot, std::int32_t before, std::int32_t asked) {
            const std::int32_t from = created - first + before, after = from + children_of(free, before, asked);
            const std::int32_t up_to = after < count ? after : count;
            for (std::int32_t child = from > 0 ? from : 0; child < up_to; ++child) parents[child] = slot;
          });
      block.barrier();
      if (thread < count) {
        const std::int32_t parent = parents[thread];
        a.parent[own + thread] = parent;
        a.born_energy[own + thread] = parent < 0 ? 0.0f : a.child_energy[rows + parent];
      }
      TWINBENCH_UNROLL
      for (int third = 0; third < 3; ++third) {  // neighbouring lanes, neighbouring coordinates
        const int i = thread + third * kThreads;
        if (i >= 3 * count) continue;
        const std::int32_t parent = parents[i / 3];
        a.born_position[3 * own + i] = parent < 0 ? 0.0f : a.position[3 * (rows + parent) + i % 3];
      }
      if (first == 0 && thread == 0) {
        const std::int32_t admitted = children_of(free, 0, total);
        a.new_created[sample] = created + admitted;
        a.dropped[sample] = total - admitted;
      }
    });
  }
};

// The same grid. A parent's children are neighbours: their gradients are added in order.
struct AdmitBack {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BackwardArguments<float>& a) const {
    auto born = simt::shared_array<std::int32_t, kThreads, 0>(block);      // slot of a parent's first child
    auto children = simt::shared_array<std::int32_t, kThreads, 1>(block);  // how many
    const int thread = simt::thread_rank(block);
    over_samples(block, a.extents, [&](std::int64_t sample, std::int32_t first, std::int32_t count) {
      const std::int64_t rows = a.extents.row(sample, 0), own = rows + first;
      const auto requests = [&](std::int32_t slot) { return a.asking.requests(rows + slot); };
      const std::int32_t created = a.asking.created[sample], free = free_slots(created, a.extents.slots);
      block.barrier();  // as above
      born[thread] = 0;
      children[thread] = 0;
      scan_requests<kThreads>(block, a.extents.slots, requests,
                              [&](std::int32_t slot, std::int32_t before, std::int32_t asked) {
                                if (slot < first || slot >= first + count) return;
                                born[slot - first] = created + before;
                                children[slot - first] = children_of(free, before, asked);
                              });
      block.barrier();
      // term(a child's row) summed over a parent's children.
      const auto sum = [&](int parent, auto term) {
        const std::int32_t from = born[parent], number = children[parent];
        float total = 0.0f;
        for (std::int32_t child = from; child < from + number; ++child) total += term(rows + child);
        return total;
      };
      if (thread < count)
        a.grad_child_energy[own + thread] = sum(thread, [&](std::int64_t row) { return a.grad_born_energy[row]; });
      TWINBENCH_UNROLL
      for (int third = 0; third < 3; ++third) {
        const int i = thread + third * kThreads;
        if (i >= 3 * count) continue;
        a.grad_position[3 * own + i] =
            sum(i / 3, [&](std::int64_t row) { return a.grad_born_position[3 * row + i % 3]; });
      }
    });
  }
};

}  // namespace twinbench::energy_flow::spawn_admission
