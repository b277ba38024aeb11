// The kernel of energy_flow.surface_collection: a block a part of one sample's cells, whose sums lie in shared memory.
#pragma once

#include "kernels/common/grid.h"
#include "kernels/common/simt_atomic.h"
#include "kernels/energy_flow/surface_collection/arguments.h"
#include "kernels/energy_flow/surface_collection/math.h"

namespace twinbench::energy_flow::surface_collection {

namespace simt = kernels::simt;

constexpr int kThreads = 256;
constexpr int kMostCells = 2048;  // of a block: 48 KB of shared memory
constexpr int kBytesOfCell = 24;
constexpr int kRemembered = 32;  // entries of a thread whose cells it need not look at again: 8,192 of a sample

// Cells of a block. Every block reads all of its sample's entries, so a part is small only where blocks are few: two
// for each of 170 multiprocessors, or a warp's cells.
TWINBENCH_HOST_DEVICE int cells_of_block(int batch, int cells) {
  const int wanted = (340 + batch - 1) / batch;
  const int even = (cells + wanted - 1) / wanted;
  return even < 64 ? 64 : even > kMostCells ? kMostCells : even;
}
TWINBENCH_HOST_DEVICE int blocks_of_sample(int cells, int cells_each) { return (cells + cells_each - 1) / cells_each; }

// The entry of a slot, as far as its cell needs it.
TWINBENCH_HOST_DEVICE int cell_of(const Arguments& a, std::int64_t sample, int slot) {
  const std::int64_t entry = sample * a.slots + slot, at = sample * 3 * a.slots + slot;
  const std::uint8_t status = a.status[entry];
  const std::int32_t forward_id = a.forward_id[entry];
  const float x = a.position[at], y = a.position[at + a.slots];
  const int cell = cell_along(y, a.height) * a.width + cell_along(x, a.width);
  return is_collected(status, forward_id, a.forward) ? cell : -1;
}
TWINBENCH_HOST_DEVICE float weight_of(const Arguments& a, std::int64_t entry) {
  return weight_of(a.energy[entry], a.distance[entry], a.age[entry]);
}

// The two passes over a flow, into a cell's words wherever they lie.
template <class Block, class Largest, class Magnitude>
TWINBENCH_DEVICE void add_maxima(Block& block, const Arguments& a, std::int64_t entry, Largest largest,
                                 Magnitude magnitude) {
  simt::atomic_max_float(block, largest, weight_of(a, entry));
  simt::atomic_max(block, magnitude, magnitude_of(a.energy[entry]));
}
template <class Block, class Sum>
TWINBENCH_DEVICE void add_sums(Block& block, const Arguments& a, std::int64_t entry, float largest,
                               std::uint32_t magnitude, Sum shares, Sum energies) {
  if (!(largest < INFINITY)) return;
  const float share = share_of(weight_of(a, entry), largest);
  const float energy = scaled_energy(share, a.energy[entry], inverse_scale(magnitude));
  simt::atomic_add(block, shares, static_cast<unsigned long long>(units_of(share)));
  simt::atomic_add(block, energies, static_cast<unsigned long long>(units_of(energy)));
}
TWINBENCH_DEVICE void store_gradient(const Arguments& a, std::int64_t entry, float gradient, const Cell& cell) {
  const float energy = a.energy[entry];
  a.grad_energy[entry] =
      energy_gradient(energy, share_of(weight_of(a, entry), cell.largest_weight),
                      weight_factor(a.distance[entry], a.age[entry]), total_share(cell), mean_energy(cell), gradient);
}

// Grid: blocks_of_sample(...) for every sample. Maxima of the cells, a barrier, exact sums, a barrier, results.
template <bool kBackward>
struct CollectAs {
  static constexpr int kMaxThreads = kThreads;
  static std::int64_t documented_shared_bytes() { return kBytesOfCell * cells_of_block(64, 80 * 80); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const int each = cells_of_block(a.batch, a.cells()), blocks = blocks_of_sample(a.cells(), each);
    const int index = static_cast<int>(block.index().x), part = index % blocks;
    const std::int64_t sample = index / blocks;
    const int first = part * each, count = a.cells() - first < each ? a.cells() - first : each;
    auto shares = simt::dynamic_shared<unsigned long long>(block);
    auto energies = simt::dynamic_shared<unsigned long long>(block, 8 * each);
    auto largest = simt::dynamic_shared<float>(block, 16 * each);
    auto magnitude = simt::dynamic_shared<unsigned>(block, 20 * each);
    const int thread = simt::thread_rank(block);
    for (int i = thread; i < count; i += kThreads) {
      shares[i] = 0;
      energies[i] = 0;
      largest[i] = -INFINITY;
      magnitude[i] = 0;
    }
    block.barrier();
    // The places of a thread's first flows in this part: one bit each, so that later passes look at no others.
    std::uint32_t mine = 0;
    for (int slot = thread, k = 0; slot < a.slots; slot += kThreads, ++k) {
      const int cell = cell_of(a, sample, slot), place = cell - first;
      if (part == 0) store_unseen(a, sample * a.slots + slot, cell);
      if (place < 0 || place >= count || cell < 0) continue;
      if (k < kRemembered) mine |= 1u << k;
      add_maxima(block, a, sample * a.slots + slot, largest + place, magnitude + place);
    }
    block.barrier();
    each_mine(a, sample, thread, mine, first, count, [&](std::int64_t entry, int place) {
      const float largest_weight = largest[place];
      const unsigned largest_energy = magnitude[place];
      add_sums(block, a, entry, largest_weight, largest_energy, shares + place, energies + place);
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
      each_mine(a, sample, thread, mine, first, count, [&](std::int64_t entry, int place) {
        store_gradient(a, entry, a.grad_surface[from + place], sums_of(place));
      });
    else
      for (int i = thread; i < count; i += kThreads) a.surface[from + i] = mean_energy(sums_of(i));
  }

 private:
  // What nobody owns: the first part writes it.
  TWINBENCH_DEVICE static void store_unseen(const Arguments& a, std::int64_t entry, int cell) {
    if constexpr (!kBackward)
      a.cell[entry] = cell;
    else if (cell < 0)
      a.grad_energy[entry] = 0.0f;
  }

  // body(entry, place) for the flows of this part that the thread has.
  template <class Body>
  TWINBENCH_DEVICE static void each_mine(const Arguments& a, std::int64_t sample, int thread, std::uint32_t mine,
                                         int first, int count, Body body) {
    for (int slot = thread, k = 0; slot < a.slots; slot += kThreads, ++k) {
      if (k < kRemembered && (mine >> k & 1u) == 0) continue;
      const int cell = cell_of(a, sample, slot), place = cell - first;
      if (cell >= 0 && place >= 0 && place < count) body(sample * a.slots + slot, place);
    }
  }
};

struct Collect : CollectAs<false> {};
struct CollectBackward : CollectAs<true> {};

}  // namespace twinbench::energy_flow::surface_collection
