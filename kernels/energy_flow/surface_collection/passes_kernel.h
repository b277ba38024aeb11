// The same in passes over all flows, sums in device memory: what `atomic_maximum` compares the one launch with.
#pragma once

#include "kernels/energy_flow/surface_collection/kernel.h"

namespace twinbench::energy_flow::surface_collection {

struct ClearCells {
  static constexpr int kMaxThreads = kThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const std::int64_t all = std::int64_t{a.batch} * a.cells();
    for (std::int64_t i = simt::global_index(block); i < all; i += simt::global_count(block)) {
      a.shares[i] = 0;
      a.energies[i] = 0;
      a.largest_weight[i] = -INFINITY;
      a.magnitude[i] = 0;
    }
  }
};

// body(entry, place of its cell) for collected flows, other(entry) for the rest.
template <class Block, class Body, class Other>
TWINBENCH_DEVICE void each_entry(Block& block, const Arguments& a, Body body, Other other) {
  const std::int64_t all = std::int64_t{a.batch} * a.slots;
  for (std::int64_t entry = simt::global_index(block); entry < all; entry += simt::global_count(block)) {
    const std::int64_t sample = entry / a.slots;
    const int cell = cell_of(a, sample, static_cast<int>(entry - sample * a.slots));
    if (cell < 0)
      other(entry);
    else
      body(entry, sample * a.cells() + cell);
  }
}

struct CellMaxima {
  static constexpr int kMaxThreads = kThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const auto store = [&](std::int64_t entry, int cell) {
      if (a.cell != nullptr) a.cell[entry] = cell;
    };
    each_entry(
        block, a,
        [&](std::int64_t entry, std::int64_t place) {
          store(entry, static_cast<int>(place % a.cells()));
          add_maxima(block, a, entry, a.largest_weight + place, a.magnitude + place);
        },
        [&](std::int64_t entry) { store(entry, -1); });
  }
};

struct CellSums {
  static constexpr int kMaxThreads = kThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    each_entry(
        block, a,
        [&](std::int64_t entry, std::int64_t place) {
          add_sums(block, a, entry, a.largest_weight[place], a.magnitude[place], a.shares + place, a.energies + place);
        },
        [](std::int64_t) {});
  }
};

TWINBENCH_HOST_DEVICE Cell sums_at(const Arguments& a, std::int64_t place) {
  return {a.largest_weight[place], a.magnitude[place], static_cast<std::int64_t>(a.shares[place]),
          static_cast<std::int64_t>(a.energies[place])};
}

struct CellMeans {
  static constexpr int kMaxThreads = kThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const std::int64_t all = std::int64_t{a.batch} * a.cells();
    for (std::int64_t i = simt::global_index(block); i < all; i += simt::global_count(block))
      a.surface[i] = mean_energy(sums_at(a, i));
  }
};

struct EnergyGradients {
  static constexpr int kMaxThreads = kThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    each_entry(
        block, a,
        [&](std::int64_t entry, std::int64_t place) {
          store_gradient(a, entry, a.grad_surface[place], sums_at(a, place));
        },
        [&](std::int64_t entry) { a.grad_energy[entry] = 0.0f; });
  }
};

}  // namespace twinbench::energy_flow::surface_collection
