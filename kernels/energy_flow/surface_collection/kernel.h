// The kernel of energy_flow.surface_collection: a block a part of one sample's cells, whose sums lie in shared memory.
#pragma once

#include "kernels/common/grid.h"
#include "kernels/common/simt_atomic.h"
#include "kernels/energy_flow/surface_collection/arguments.h"
#include "kernels/energy_flow/surface_collection/math.h"

namespace twinbench::energy_flow::surface_collection {

namespace simt = kernels::simt;

constexpr int kThreads = 1024;
constexpr int kMostCells = 4096;  // of a block: 96 KB of shared memory
constexpr int kBytesOfCell = 24;
constexpr int kKept = 4;  // flows that a thread keeps from pass to pass: 4,096 of a sample

// A sample has one block, or as many as hold its cells.
TWINBENCH_HOST_DEVICE int blocks_of_sample(int cells) { return (cells + kMostCells - 1) / kMostCells; }
TWINBENCH_HOST_DEVICE int cells_of_block(int cells) {
  return (cells + blocks_of_sample(cells) - 1) / blocks_of_sample(cells);
}

// What a slot holds, all of it loaded at once: cell -1 where nothing is collected.
struct Flow {
  int cell;
  float energy, weight, factor;
};
TWINBENCH_HOST_DEVICE Flow flow_at(const Arguments& a, std::int64_t sample, int slot) {
  const std::int64_t entry = sample * a.slots + slot, at = sample * 3 * a.slots + slot;
  const std::uint8_t status = a.status[entry];
  const std::int32_t forward_id = a.forward_id[entry], age = a.age[entry];
  const float x = a.position[at], y = a.position[at + a.slots];
  const float energy = a.energy[entry], distance = a.distance[entry];
  const int cell = cell_along(y, a.height) * a.width + cell_along(x, a.width);
  return {is_collected(status, forward_id, a.forward) ? cell : -1, energy, weight_of(energy, distance, age),
          weight_factor(distance, age)};
}

// The two passes over a flow, into a cell's words wherever they lie.
template <class Block, class Largest, class Magnitude>
TWINBENCH_DEVICE void add_maxima(Block& block, const Flow& flow, Largest largest, Magnitude magnitude) {
  simt::atomic_max_float(block, largest, flow.weight);
  simt::atomic_max(block, magnitude, magnitude_of(flow.energy));
}
template <class Block, class Sum>
TWINBENCH_DEVICE void add_sums(Block& block, const Flow& flow, float largest, std::uint32_t magnitude, Sum shares,
                               Sum energies) {
  if (!(largest < INFINITY)) return;
  const float share = share_of(flow.weight, largest);
  const float energy = scaled_energy(share, flow.energy, inverse_scale(magnitude));
  simt::atomic_add(block, shares, static_cast<unsigned long long>(units_of(share)));
  simt::atomic_add(block, energies, static_cast<unsigned long long>(units_of(energy)));
}
TWINBENCH_HOST_DEVICE float gradient_of(const Flow& flow, const Cell& cell, float grad_surface) {
  return energy_gradient(flow.energy, share_of(flow.weight, cell.largest_weight), flow.factor, total_share(cell),
                         mean_energy(cell), grad_surface);
}

// Grid: blocks_of_sample(cells) for every sample. Maxima of the cells, a barrier, exact sums, a barrier, results.
template <bool kBackward>
struct CollectAs {
  static constexpr int kMaxThreads = kThreads;
  static std::int64_t documented_shared_bytes() { return kBytesOfCell * cells_of_block(80 * 80); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const int each = cells_of_block(a.cells()), blocks = blocks_of_sample(a.cells());
    const int part = static_cast<int>(block.index().x) % blocks, first = part * each;
    const std::int64_t sample = static_cast<int>(block.index().x) / blocks;
    const int count = a.cells() - first < each ? a.cells() - first : each;
    auto shares = simt::dynamic_shared<unsigned long long>(block);
    auto energies = simt::dynamic_shared<unsigned long long>(block, 8 * each);
    auto largest = simt::dynamic_shared<float>(block, 16 * each);
    auto magnitude = simt::dynamic_shared<unsigned>(block, 20 * each);
    const int thread = simt::thread_rank(block);
    // Flows of other cells than the block's end here: they have cell -1 from now on, the block's have their place.
    const auto load = [&](int slot) {
      Flow flow{-1, 0.0f, 0.0f, 0.0f};
      if (slot >= a.slots) return flow;
      flow = flow_at(a, sample, slot);
      if (part == 0) store_unseen(a, sample * a.slots + slot, flow.cell);
      flow.cell -= flow.cell < first || flow.cell >= first + count ? flow.cell + 1 : first;
      return flow;
    };
    Flow kept[kKept];
    TWINBENCH_UNROLL
    for (int k = 0; k < kKept; ++k) kept[k] = load(thread + k * kThreads);
    for (int i = thread; i < count; i += kThreads) {
      shares[i] = 0;
      energies[i] = 0;
      largest[i] = -INFINITY;
      magnitude[i] = 0;
    }
    block.barrier();
    // body(flow, slot) for the block's flows, those beyond what is kept loaded again.
    const auto each_flow = [&](auto body) {
      TWINBENCH_UNROLL
      for (int k = 0; k < kKept; ++k)
        if (kept[k].cell >= 0) body(kept[k], thread + k * kThreads);
      for (int slot = thread + kKept * kThreads; slot < a.slots; slot += kThreads)
        if (const Flow flow = load(slot); flow.cell >= 0) body(flow, slot);
    };
    each_flow([&](const Flow& flow, int) { add_maxima(block, flow, largest + flow.cell, magnitude + flow.cell); });
    block.barrier();
    each_flow([&](const Flow& flow, int) {
      const float largest_weight = largest[flow.cell];
      const unsigned largest_energy = magnitude[flow.cell];
      add_sums(block, flow, largest_weight, largest_energy, shares + flow.cell, energies + flow.cell);
    });
    block.barrier();
    const auto sums_of = [&](int place) {
      const unsigned long long of_shares = shares[place], of_energies = energies[place];
      const float largest_weight = largest[place];
      const unsigned largest_energy = magnitude[place];
      return Cell{largest_weight, largest_energy, static_cast<std::int64_t>(of_shares),
                  static_cast<std::int64_t>(of_energies)};
    };
    const std::int64_t from = sample * a.cells() + first;
    if constexpr (kBackward)
      each_flow([&](const Flow& flow, int slot) {
        a.grad_energy[sample * a.slots + slot] =
            gradient_of(flow, sums_of(flow.cell), a.grad_surface[from + flow.cell]);
      });
    else
      for (int i = thread; i < count; i += kThreads) a.surface[from + i] = mean_energy(sums_of(i));
  }

 private:
  // What no cell's block writes: the sample's first one does.
  TWINBENCH_DEVICE static void store_unseen(const Arguments& a, std::int64_t entry, int cell) {
    if constexpr (!kBackward)
      a.cell[entry] = cell;
    else if (cell < 0)
      a.grad_energy[entry] = 0.0f;
  }
};

struct Collect : CollectAs<false> {};
struct CollectBackward : CollectAs<true> {};

}  // namespace twinbench::energy_flow::surface_collection
