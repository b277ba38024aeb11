// The whole forward's kernels: its mapper, what it has in common with the whole backward pass, and those that go over
// samples: placement, the stop's look, the list of live flows, and the collection. Written once for the GPU and for the
// checked run on the host. A sample is one block's, so that its counts need no atomics.
#pragma once

#include "kernels/common/vectors.h"
#include "kernels/energy_flow/common/flow_cells.h"
#include "kernels/energy_flow/common/flow_row_kernel.h"
#include "kernels/energy_flow/common/flow_settle_kernel.h"
#include "kernels/energy_flow/common/flow_tile_kernel.h"
#include "kernels/energy_flow/common/layer_kernel.h"
#include "kernels/energy_flow/common/placement.h"
#include "kernels/energy_flow/flow_forward/arguments.h"

namespace twinbench::energy_flow::flow_forward {

namespace simt = kernels::simt;

struct MapperLayer : output_collector::LayerAs<float, 4> {};
struct MapperLayerAnyWidth : output_collector::LayerAs<float, 1> {};
struct MapperSurface : output_collector::LayerAs<float, 4, output_collector::SurfaceEnergies> {};
struct MapperSurfaceAnyWidth : output_collector::LayerAs<float, 1, output_collector::SurfaceEnergies> {};

struct MapperLayerBfloat : output_collector::LayerAs<std::uint16_t, 4, output_collector::AsItIs, true> {};
struct MapperLayerBfloatAnyWidth : output_collector::LayerAs<std::uint16_t, 1, output_collector::AsItIs, true> {};
struct MapperSurfaceBfloat : output_collector::LayerAs<std::uint16_t, 4, output_collector::SurfaceEnergies> {};
struct MapperSurfaceBfloatAnyWidth : output_collector::LayerAs<std::uint16_t, 1, output_collector::SurfaceEnergies> {};

struct NeuronRows : NeuronOfRows<false> {};
struct NeuronRowsBfloat : NeuronOfRows<true> {};
struct RecurrentTiles : RecurrentProducts<false, false> {};
struct StoredRecurrentTiles : RecurrentProducts<true, false> {};
struct RecurrentTilesTf32 : RecurrentProducts<false, true> {};
struct StoredRecurrentTilesTf32 : RecurrentProducts<true, true> {};
struct SettleSamples : SettleEach {};

// Rows of any length and start.
struct FinishAnyWidth : FinishRows<1> {};

struct Finish : FinishRows<4> {
  // Dynamic, for 512 state channels in gate mode.
  static std::int64_t documented_shared_bytes() { return carrier_heads::forward_shared_bytes({256, 64, 392}, true); }
};

// Grid: column_tiles() for every kTileFlows rows that there can be. Sums without bias.
template <bool kRound, bool kTf32>
struct HeadTilesAs {
  static constexpr int kMaxThreads = kTileThreads;
  static constexpr int kMinBlocksPerSm = 3;
  static std::int64_t documented_shared_bytes() { return kTileBytes; }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TileArguments& a) const {
    constexpr StateAs kState = kRound ? StateAs::kRounded : StateAs::kFloat;
    using Tile = FlowTile<Block, kState, kTf32>;
    over_tile<kState, kTf32>(block, a, column_tiles(a), [&](Tile& tile) {
      typename Tile::Sums sums[3] = {};
      TWINBENCH_ROLLED
      for (int slice = 0; slice < tile.slices; ++slice) tile.step(slice, sums[0], sums[1], sums[2]);
      TWINBENCH_UNROLL
      for (int third = 0; third < 3; ++third) {
        const int column = tile.tile * kTileColumns + third * kTileChannels + tile.own_column;
        TWINBENCH_UNROLL
        for (int f = 0; f < kOwnFlows; ++f) {
          const std::int64_t row = tile.first + tile.own_flow + f;
          if (row < tile.total && column < a.columns)
            kernels::store(a.out + row * a.columns + column,
                           kernels::Floats<2>{{sums[third][0][f], sums[third][1][f]}});
        }
      }
    });
  }
};

struct HeadTiles : HeadTilesAs<false, false> {};
struct HeadTilesBfloat : HeadTilesAs<true, false> {};
struct HeadTilesTf32 : HeadTilesAs<false, true> {};

// Grid: kernels::row_pieces(samples, placed, kSampleThreads), at least one piece: a thread a flow.
struct PlaceFlows {
  static constexpr int kMaxThreads = kSampleThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const int thread = simt::thread_rank(block);
    const std::int32_t cell = static_cast<std::int32_t>(block.index().x) * kSampleThreads + thread;
    for (std::int64_t sample = block.index().y; sample < a.slots.samples; sample += block.grid().y) {
      if (cell < a.placed) place(a, sample, cell);
      if (block.index().x > 0) continue;
      if (thread < kStatistics)
        a.stats_of(sample)[thread] = thread == kCreated          ? a.placed
                                     : thread == kDroppedInitial ? a.cells() - a.placed
                                                                 : 0;
      for (std::int32_t t = thread; t < a.stop.max_steps; t += kSampleThreads)
        a.active[sample * a.stop.max_steps + t] = 0;
      if (thread == 0) a.next_live[sample] = a.placed;
      if (thread < 2 && sample == 0 && a.clock != nullptr) a.clock[thread] = thread == 0 ? 0 : a.pass;
      if (thread == 1) a.margin[sample] = 1.0f;
    }
  }

 private:
  static TWINBENCH_DEVICE void place(const Arguments& a, std::int64_t sample, std::int32_t cell) {
    const std::int32_t slot = a.slots.first(sample) + cell, y = cell / a.width, x = cell - y * a.width;
    a.flows.energy[slot] = a.energies[sample * a.cells() + cell];
    a.flows.x[slot] = flow_placement::normalized(x, a.width - 1);
    a.flows.y[slot] = flow_placement::normalized(y, a.height - 1);
    a.flows.z[slot] = a.start_depth;
    a.flows.age[slot] = 0;
    a.flows.status[slot] = flow_movement::kActive;
    a.next.slot[slot] = slot;
    a.next.source[slot] = kNoSource;
  }
};

// Grid: one block, a thread a sample (striding). Before the step at hand: whether each sample goes on, and where the
// rows of those that do begin.
struct LookAtSamples {
  static constexpr int kMaxThreads = kSampleThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const std::int32_t step = a.step_at_hand();
    std::int32_t rows = 0;
    for (std::int64_t first = 0; first < a.slots.samples; first += kSampleThreads) {
      const std::int64_t sample = first + simt::thread_rank(block);
      const bool there = sample < a.slots.samples;
      const std::int32_t own = there ? look(a, step, sample) : 0;
      const simt::Prefix<std::int32_t> before = simt::block_exclusive_sum(block, own);
      if (there) a.begin[sample] = rows + before.before;
      rows += before.total;
    }
    if (simt::thread_rank(block) > 0) return;
    *a.total = rows;
    if (a.clock != nullptr) a.clock[0] = step;  // all threads have read it before the sums
    // A sample that goes on has flows. The host sees it at the kernel's end at the latest, as early as it needs to.
    if (rows == 0) *a.all_finished = a.pass_at_hand();
  }

 private:
  // Its rows of the step.
  static TWINBENCH_DEVICE std::int32_t look(const Arguments& a, std::int32_t step, std::int64_t sample) {
    std::int32_t* const stats = a.stats_of(sample);
    const StopState before = a.states.before(step, sample);
    const std::int32_t active = a.next_live[sample];
    const StopState now = decided(a.stop, step, before,
                                  {.completed = stats[kDoneZ0] + stats[kDoneZD] + stats[kProjectedAge],
                                   .created = stats[kCreated],
                                   .active = active});
    a.states.set(sample, now);
    const bool stops = now.finished() && !before.finished();
    if (stops) {
      stats[kSteps] = now.steps;
      stats[kReason] = static_cast<std::int32_t>(now.reason);
      stats[a.movement.drop ? flow_movement::kDroppedAtStop : flow_movement::kProjectedAtStop] += active;
    }
    const std::int32_t rows = now.finished() ? 0 : active;
    a.ending[sample] = stops ? active : 0;
    a.live[sample] = rows;
    if (rows > 0) a.active[sample * a.stop.max_steps + step] = rows;
    return rows;
  }
};

// Grid: a block a sample. Its live flows take their rows; those of a sample that has just stopped end where they are.
struct ListFlows {
  static constexpr int kMaxThreads = kSampleThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const std::int64_t sample = block.index().x;
    const std::int32_t first = a.slots.first(sample), thread = simt::thread_rank(block);
    const std::int32_t begin = a.begin[sample], ending = a.ending[sample];
    struct Row {
      std::int32_t slot, source;
    };
    kernels::in_batches<4, std::int32_t>(
        thread, kSampleThreads, a.live[sample],
        [&](std::int32_t i) {
          return Row{a.next.slot[first + i], a.next.source[first + i]};
        },
        [&](std::int32_t i, Row row) {
          a.rows.slot[begin + i] = row.slot;
          a.rows.source[begin + i] = row.source;
        });
    if (ending == 0) return;  // of the whole block
    float least = 1.0f;
    for (std::int32_t i = thread; i < ending; i += kSampleThreads)
      least = smaller(least, end(a, a.next.slot[first + i]));
    least = -simt::block_max(block, -least, -1.0f);
    if (thread == 0) a.margin[sample] = smaller(a.margin[sample], least);
  }

 private:
  // Returns how near its plane and its cell are to another one.
  static TWINBENCH_DEVICE float end(const Arguments& a, std::int32_t slot) {
    const float x = a.flows.x[slot], y = a.flows.y[slot], z = a.flows.z[slot];
    const flow_movement::Flow<float> flow =
        flow_movement::moved(a.movement, true, x, y, z, a.flows.energy[slot], a.flows.age[slot]);
    a.flows.distance[slot] = flow.distance;
    a.flows.status[slot] = static_cast<std::uint8_t>(flow.status);
    const float margin = stop_margin(a.movement, z, a.start_depth);
    return is_done(flow.status) ? smaller(margin, place_margin(x, y, a.width, a.height)) : margin;
  }
};

// Grid: surface_collection::blocks_of_sample(cells) for every sample.
struct CollectSurfaces {
  static constexpr int kMaxThreads = surface_collection::kCollectThreads;
  static std::int64_t documented_shared_bytes() {
    return surface_collection::kBytesOfCell * surface_collection::cells_of_block(80 * 80);
  }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    namespace rule = surface_collection;
    const auto load = [&](const rule::CellPart& part, std::int32_t number) { return done_flow(a, part, number); };
    rule::collect_cells(block, a.cells(), a.slots.each, load, [&](const rule::CellPart& part, auto sums_of, auto) {
      int reached = 0;
      for (int i = simt::thread_rank(block); i < part.count; i += rule::kCollectThreads) {
        const rule::Cell cell = sums_of(i);
        a.surface[std::int64_t{part.sample} * a.cells() + part.first + i] = rule::mean_energy(cell);
        reached += cell.largest_weight > -INFINITY ? 1 : 0;
      }
      reached = simt::block_sum(block, reached);
      if (simt::thread_rank(block) == 0 && reached > 0)
        simt::atomic_add(block, a.stats_of(part.sample) + kCells, reached);
    });
  }
};

}  // namespace twinbench::energy_flow::flow_forward
