// The whole backward pass's kernels that leave the tape, and those that begin and end the way back: from the gradient
// of the surface to those of the flows' last energies, and what is returned of their first ones. Written once for the
// GPU and for the checked run on the host.
#pragma once

#include "kernels/common/grid.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/common/flow_cells.h"
#include "kernels/energy_flow/common/flow_row_kernel.h"
#include "kernels/energy_flow/common/flow_settle_kernel.h"
#include "kernels/energy_flow/common/flow_tile_kernel.h"
#include "kernels/energy_flow/flow_backward/arguments.h"

namespace twinbench::energy_flow::flow_backward {

namespace simt = kernels::simt;

// The whole forward's, which leaves place and energy before the step, the heads' sums, and the reflection's slopes.
template <int kWidth>
struct FinishAs : flow_forward::FinishRows<kWidth> {
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TapedArguments& a) const {
    const StepRows& tape = a.tape;
    const std::int64_t slots = a.slots;
    const auto slope = [&](float raw) { return a.forward.movement.kill ? 1.0f : flow_movement::reflected_slope(raw); };
    this->run(block, a.forward,
              [&](std::int64_t row, const flow_forward::RowBefore& before, const carrier_heads::Sums<float>& sums,
                  const carrier_heads::Results<float>& to) {
                tape.x[row] = before.position.x;
                tape.y[row] = before.position.y;
                tape.z[row] = before.position.z;
                tape.energy[row] = a.forward.flows.energy[before.slot];
                tape.second_sums[row] = sums.energy;
                tape.second_sums[slots + row] = sums.displacement.x;
                tape.second_sums[2 * slots + row] = sums.displacement.y;
                tape.second_sums[3 * slots + row] = sums.displacement.z;
                tape.second_sums[4 * slots + row] = sums.child;
                tape.slope_x[row] = slope(to.raw.x);
                tape.slope_y[row] = slope(to.raw.y);
              });
  }
};

// Rows of any length and start.
struct FinishTapedAnyWidth : FinishAs<1> {};

struct FinishTaped : FinishAs<4> {
  // Dynamic, for 512 state channels in gate mode.
  static std::int64_t documented_shared_bytes() { return carrier_heads::forward_shared_bytes({256, 64, 392}, true); }
};

// The whole forward's, which leaves whose children are where.
struct SettleTaped : flow_forward::SettleEach {
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TapedArguments& a) const {
    run(block, a.forward, [&](std::int32_t row, std::int32_t first, std::int32_t children) {
      a.tape.first_child[row] = first;
      a.tape.children[row] = children;
    });
  }
};

// The whole forward's, which leaves the gates.
template <bool kStores, bool kTf32>
struct GatesTapedAs : flow_forward::RecurrentProducts<kStores, kTf32> {
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const GatesArguments& a) const {
    const std::int64_t stride = a.tile.stride;
    this->run(block, a.tile, [&](std::int64_t row, int channel, const flow_forward::RowGates& gates) {
      if (a.tile.out != nullptr) this->store_state(a.tile, row, channel, gates);
      float* const to = a.gates + 4 * row * stride + channel;
      kernels::store(to, kernels::Floats<2>{{gates.of[0].reset, gates.of[1].reset}});
      kernels::store(to + stride, kernels::Floats<2>{{gates.of[0].update, gates.of[1].update}});
      kernels::store(to + 2 * stride, kernels::Floats<2>{{gates.of[0].candidate, gates.of[1].candidate}});
      kernels::store(to + 3 * stride, kernels::Floats<2>{{gates.from_state[0], gates.from_state[1]}});
    });
  }
};

struct GatesTaped : GatesTapedAs<false, false> {};
struct StoredGatesTaped : GatesTapedAs<true, false> {};
struct GatesTapedTf32 : GatesTapedAs<false, true> {};
struct StoredGatesTapedTf32 : GatesTapedAs<true, true> {};

// Grid: striding_blocks(count / 4, kElementThreads).
struct ClearAdjoints {
  static constexpr int kMaxThreads = kernels::kElementThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ClearArguments& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.count / 4; i += simt::global_count(block))
      kernels::store(a.all + 4 * i, kernels::Floats<4>{});
  }
};

// Grid: surface_collection::blocks_of_sample(cells) for every sample.
struct UncollectSurfaces {
  static constexpr int kMaxThreads = surface_collection::kCollectThreads;
  static constexpr int kMinBlocksPerSm = 1;  // its shared memory leaves room for no more: registers, not spills
  static std::int64_t documented_shared_bytes() {
    return surface_collection::kBytesOfCell * surface_collection::cells_of_block(80 * 80);
  }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const UncollectArguments& a) const {
    namespace rule = surface_collection;
    const flow_forward::Arguments& f = a.forward;
    const auto load = [&](const rule::CellPart& part, std::int32_t number) {
      rule::Flow flow = done_flow(f, part, number);
      const std::int32_t slot = f.slots.first(part.sample) + number;
      if (flow.cell >= 0) flow.factor = rule::weight_factor(f.flows.distance[slot], f.flows.age[slot]);
      return flow;
    };
    rule::collect_cells(
        block, f.cells(), f.slots.each, load, [&](const rule::CellPart& part, auto sums_of, auto each_flow) {
          const float* const surface = a.grad_surface + std::int64_t{part.sample} * f.cells() + part.first;
          each_flow([&](const rule::Flow& flow, int number) {
            const rule::Cell cell = sums_of(flow.cell);
            a.grad_energy[f.slots.first(part.sample) + number] =
                rule::energy_gradient(flow.energy, rule::share_of(flow.weight, cell.largest_weight), flow.factor,
                                      rule::total_share(cell), rule::mean_energy(cell), surface[flow.cell]);
          });
        });
  }
};

// Grid: kernels::row_pieces(samples, placed, kElementThreads), at least one piece: a thread a flow.
struct ReturnEnergies {
  static constexpr int kMaxThreads = kernels::kElementThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ReturnArguments& a) const {
    const int thread = simt::thread_rank(block);
    const std::int32_t number = static_cast<std::int32_t>(block.index().x) * kMaxThreads + thread;
    for (std::int64_t sample = block.index().y; sample < a.slots.samples; sample += block.grid().y)
      if (number < a.placed) a.grad_energy[sample * a.cells + number] = a.adjoint[a.slots.first(sample) + number];
    if (block.index().x > 0 || block.index().y > 0) return;  // whole blocks
    long long kept = 0, largest = 0, last = 0;
    for (std::int32_t first = thread * a.every; first < a.steps; first += kMaxThreads * a.every) {
      long long rows = 0;
      for (std::int32_t step = first; step < a.steps && step < first + a.every; ++step) rows += a.totals[step];
      kept += rows * a.bytes.of_record + a.totals[first] * a.bytes.of_start;
      last = rows * a.bytes.of_step;  // a thread's segments go up
      largest = last > largest ? last : largest;
      if (first + a.every < a.steps) last = 0;
    }
    kept = simt::block_sum(block, kept), last = simt::block_sum(block, last);
    largest = simt::block_max(block, largest, 0LL);
    if (thread > 0) return;
    a.tape_bytes[0] = kept + last;
    a.tape_bytes[1] = 0;
    a.tape_bytes[2] = kept + largest;
    a.tape_bytes[3] = a.steps == 0 ? 0 : a.steps + (a.steps - 1) / a.every * a.every;
  }
};

}  // namespace twinbench::energy_flow::flow_backward
