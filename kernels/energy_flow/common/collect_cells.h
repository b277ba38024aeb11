// A sample's flows into its cells (C11): a block a part of the cells, whose sums lie in shared memory. In the namespace
// of the component that specifies it; the whole forward takes it too.
#pragma once

#include "kernels/common/simt_atomic.h"
#include "kernels/energy_flow/common/collection.h"

namespace twinbench::energy_flow::surface_collection {

namespace simt = kernels::simt;

constexpr int kCollectThreads = 1024;
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
// The part of a sample's cells that a block has.
struct CellPart {
  int sample, part, first, count;
};

// Grid: blocks_of_sample(cells) for every sample. load(part, slot): the flow of a slot, with its cell in the sample.
// finish(part, sums_of, each_flow) when all is added: sums_of(place) gives the sums of cell first + place;
// each_flow(body) calls body(flow, slot), the flow's cell being its place now. Maxima of the cells, a barrier, exact
// sums, a barrier, results.
template <class Block, class Load, class Finish>
TWINBENCH_DEVICE void collect_cells(Block& block, int cells, int slots, Load load_flow, Finish finish) {
  const int each = cells_of_block(cells), blocks = blocks_of_sample(cells);
  const int number = static_cast<int>(block.index().x) % blocks, first = number * each;
  const CellPart part{static_cast<int>(block.index().x) / blocks, number, first,
                      cells - first < each ? cells - first : each};
  auto shares = simt::dynamic_shared<unsigned long long>(block);
  auto energies = simt::dynamic_shared<unsigned long long>(block, 8 * each);
  auto largest = simt::dynamic_shared<float>(block, 16 * each);
  auto magnitude = simt::dynamic_shared<unsigned>(block, 20 * each);
  const int thread = simt::thread_rank(block);
  // Flows of other cells than the block's end here: they have cell -1 from now on, the block's have their place.
  const auto load = [&](int slot) {
    Flow flow{-1, 0.0f, 0.0f, 0.0f};
    if (slot >= slots) return flow;
    flow = load_flow(part, slot);
    flow.cell -= flow.cell < first || flow.cell >= first + part.count ? flow.cell + 1 : first;
    return flow;
  };
  Flow kept[kKept];
  TWINBENCH_UNROLL
  for (int k = 0; k < kKept; ++k) kept[k] = load(thread + k * kCollectThreads);
  for (int i = thread; i < part.count; i += kCollectThreads) {
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
      if (kept[k].cell >= 0) body(kept[k], thread + k * kCollectThreads);
    for (int slot = thread + kKept * kCollectThreads; slot < slots; slot += kCollectThreads)
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
  finish(part, sums_of, each_flow);
}

}  // namespace twinbench::energy_flow::surface_collection
