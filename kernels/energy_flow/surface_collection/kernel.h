// The kernel of energy_flow.surface_collection: energy_flow/common's collection of what flow storage holds.
#pragma once

#include "kernels/common/grid.h"
#include "kernels/energy_flow/common/collect_cells.h"
#include "kernels/energy_flow/surface_collection/arguments.h"
#include "kernels/energy_flow/surface_collection/math.h"

namespace twinbench::energy_flow::surface_collection {

constexpr int kThreads = kCollectThreads;

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

TWINBENCH_HOST_DEVICE float gradient_of(const Flow& flow, const Cell& cell, float grad_surface) {
  return energy_gradient(flow.energy, share_of(flow.weight, cell.largest_weight), flow.factor, total_share(cell),
                         mean_energy(cell), grad_surface);
}

// Grid: blocks_of_sample(cells) for every sample. Maxima of the cells, a barrier, exact sums, a barrier, results.
template <bool kBackward>
struct CollectAs {
  static constexpr int kMaxThreads = kThreads;
  static constexpr int kMinBlocksPerSm = 1;  // its shared memory leaves room for no more: registers, not spills
  static std::int64_t documented_shared_bytes() { return kBytesOfCell * cells_of_block(80 * 80); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const auto load = [&](const CellPart& part, int slot) {
      const Flow flow = flow_at(a, part.sample, slot);
      if (part.part == 0) store_unseen(a, std::int64_t{part.sample} * a.slots + slot, flow.cell);
      return flow;
    };
    collect_cells(block, a.cells(), a.slots, load, [&](const CellPart& part, auto sums_of, auto each_flow) {
      const std::int64_t from = std::int64_t{part.sample} * a.cells() + part.first;
      if constexpr (kBackward)
        each_flow([&](const Flow& flow, int slot) {
          a.grad_energy[std::int64_t{part.sample} * a.slots + slot] =
              gradient_of(flow, sums_of(flow.cell), a.grad_surface[from + flow.cell]);
        });
      else
        for (int i = simt::thread_rank(block); i < part.count; i += kThreads)
          a.surface[from + i] = mean_energy(sums_of(i));
    });
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
