// The same in passes over all flows, sums in device memory: what `atomic_maximum` compares the one launch with.
#pragma once

#include "kernels/energy_flow/surface_collection/kernel.h"

namespace twinbench::energy_flow::surface_collection {

constexpr int kPassThreads = 256;

struct ClearCells {
  static constexpr int kMaxThreads = kPassThreads;
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

// body(flow, entry, place of its cell) for collected flows, other(entry) for the rest.
template <class Block, class Body, class Other>
TWINBENCH_DEVICE void each_entry(Block& block, const Arguments& a, Body body, Other other) {
  const std::int64_t all = std::int64_t{a.batch} * a.slots;
  for (std::int64_t entry = simt::global_index(block); entry < all; entry += simt::global_count(block)) {
    const std::int64_t sample = entry / a.slots;
    const Flow flow = flow_at(a, sample, static_cast<int>(entry - sample * a.slots));
    if (flow.cell < 0)
      other(entry);
    else
      body(flow, entry, sample * a.cells() + flow.cell);
  }
}

struct CellMaxima {
  static constexpr int kMaxThreads = kPassThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const auto store = [&](std::int64_t entry, int cell) {
      if (a.cell != nullptr) a.cell[entry] = cell;
    };
    each_entry(
        block, a,
        [&](const Flow& flow, std::int64_t entry, std::int64_t place) {
          store(entry, flow.cell);
          add_maxima(block, flow, a.largest_weight + place, a.magnitude + place);
        },
        [&](std::int64_t entry) { store(entry, -1); });
  }
};

struct CellSums {
  static constexpr int kMaxThreads = kPassThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    each_entry(
        block, a,
        [&](const Flow& flow, std::int64_t, std::int64_t place) {
          add_sums(block, flow, a.largest_weight[place], a.magnitude[place], a.shares + place, a.energies + place);
        },
        [](std::int64_t) {});
  }
};

TWINBENCH_HOST_DEVICE Cell sums_at(const Arguments& a, std::int64_t place) {
  return {a.largest_weight[place], a.magnitude[place], static_cast<std::int64_t>(a.shares[place]),
          static_cast<std::int64_t>(a.energies[place])};
}

struct CellMeans {
  static constexpr int kMaxThreads = kPassThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const std::int64_t all = std::int64_t{a.batch} * a.cells();
    for (std::int64_t i = simt::global_index(block); i < all; i += simt::global_count(block))
      a.surface[i] = mean_energy(sums_at(a, i));
  }
};

struct EnergyGradients {
  static constexpr int kMaxThreads = kPassThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    each_entry(
        block, a,
        [&](const Flow& flow, std::int64_t entry, std::int64_t place) {
          a.grad_energy[entry] = gradient_of(flow, sums_at(a, place), a.grad_surface[place]);
        },
        [&](std::int64_t entry) { a.grad_energy[entry] = 0.0f; });
  }
};

}  // namespace twinbench::energy_flow::surface_collection
