// The flow step's kernels, written once for the GPU and for the checked run on the host: a thread a flow. Rows of three
// values go through shared memory, so that neighbouring lanes touch neighbouring addresses.
#pragma once

#include "kernels/common/simt_atomic.h"
#include "kernels/common/simt_bits.h"
#include "kernels/common/simt_handover.h"
#include "kernels/energy_flow/flow_movement/arguments.h"

namespace twinbench::energy_flow::flow_movement {

namespace simt = kernels::simt;

// The 3 * `count` values of a block's flows, all threads together. No barrier.
template <class Block, class Shared>
TWINBENCH_DEVICE void load_rows(Block& block, const float* from, Shared to, int count) {
  TWINBENCH_UNROLL
  for (int part = 0; part < 3; ++part) {
    const int i = simt::thread_rank(block) + part * kThreads;
    if (i < 3 * count) to[i] = from[i];
  }
}
template <class Block, class Shared>
TWINBENCH_DEVICE void store_rows(Block& block, Shared from, float* to, int count) {
  TWINBENCH_UNROLL
  for (int part = 0; part < 3; ++part) {
    const int i = simt::thread_rank(block) + part * kThreads;
    if (i < 3 * count) to[i] = from[i];
  }
}

// body(first flow of the group, flows in it, whether the thread has one, the thread's flow) for groups of kThreads.
template <class Block, class Body>
TWINBENCH_DEVICE void over_groups(Block& block, std::int64_t flows, Body body) {
  const std::int64_t step = std::int64_t{block.grid().x} * kThreads;
  for (std::int64_t group = std::int64_t{block.index().x} * kThreads; group < flows; group += step) {
    const int count = flows - group < kThreads ? static_cast<int>(flows - group) : kThreads;
    const int row = simt::thread_rank(block);
    body(group, count, row < count, group + row);
  }
}

// Grid: kernels::striding_blocks(flows, kThreads, kMostBlocks). Counts are sums of integers: exact in any order. A warp
// adds those of each sample that it meets, neighbours most often being of one; the block that is done last hands them
// over and leaves zeros for the next launch.
struct Move {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ForwardArguments<float>& a) const {
    auto place = simt::shared_array<float, 3 * kThreads>(block);
    auto ends = simt::shared_array<std::int32_t, kThreads>(block);
    const int row = simt::thread_rank(block);
    over_groups(block, a.flows, [&](std::int64_t group, int count, bool there, std::int64_t flow) {
      std::int32_t sample = -1, age = 0;
      float energy = 0.0f;
      if (there) {
        sample = a.read.sample[flow];
        age = a.read.age[flow];
        energy = a.next_energy[flow];
      }
      load_rows(block, a.read.raw + 3 * group, place, count);
      const bool counted = is_sample(sample, a.samples), stopped = counted && a.read.stopped[sample];
      ends[row] = stopped ? 1 : 0;
      block.barrier();
      TWINBENCH_UNROLL
      for (int part = 0; part < 3; ++part) {
        const int i = row + part * kThreads;
        if (i >= 3 * count) continue;
        const std::int32_t rests = ends[i / 3];
        if (rests != 0) place[i] = a.read.position[3 * group + i];
      }
      if (stopped) energy = a.energy[flow];
      block.barrier();
      std::int32_t outcome = kStaysActive;
      if (there) {
        const float x = place[3 * row], y = place[3 * row + 1], z = place[3 * row + 2];
        const Flow<float> result = moved(a.rule, stopped, x, y, z, energy, age);
        outcome = result.outcome;
        a.new_energy[flow] = result.energy;
        a.new_age[flow] = result.age;
        a.status[flow] = static_cast<std::uint8_t>(result.status);
        a.distance[flow] = result.distance;
        place[3 * row] = result.x;
        place[3 * row + 1] = result.y;
        place[3 * row + 2] = result.z;
      }
      count_outcomes(block, a, counted ? sample : -1, outcome);
      block.barrier();
      store_rows(block, place, a.new_position + 3 * group, count);  // the next group's writer is who read here
    });
    hand_over(block, a);
  }

 private:
  // All lanes call; those of no sample have -1.
  template <class Block>
  static TWINBENCH_DEVICE void count_outcomes(Block& block, const ForwardArguments<float>& a, std::int32_t sample,
                                              std::int32_t outcome) {
    std::uint32_t left = block.ballot(sample >= 0);
    while (left != 0) {
      const std::int32_t now = block.shuffle_index(sample, simt::first_lane(left));
      const bool own = sample == now;
      int count = 0;
      TWINBENCH_UNROLL
      for (int column = 0; column < kOutcomes; ++column) {
        const std::uint32_t same = block.ballot(own && outcome == column);
        if (simt::lane(block) == column) count = simt::lanes_in(same);
      }
      if (count > 0) simt::atomic_add(block, a.tally + std::int64_t{now} * kOutcomes + simt::lane(block), count);
      left &= ~block.ballot(own);
    }
  }

  template <class Block>
  static TWINBENCH_DEVICE void hand_over(Block& block, const ForwardArguments<float>& a) {
    const std::int64_t columns = a.samples * kOutcomes;
    auto* const finished = reinterpret_cast<unsigned*>(a.tally + columns);
    if (!simt::is_last_block(block, finished, block.grid().x)) return;
    for (std::int64_t i = simt::thread_rank(block); i < columns; i += kThreads)
      a.counts[i] = simt::atomic_exchange(block, a.tally + i, 0);
  }
};

// The same grid. What became of each flow is found again: that costs less than keeping it.
struct MoveBack {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BackwardArguments<float>& a) const {
    auto raw = simt::shared_array<float, 3 * kThreads, 0>(block);
    auto place = simt::shared_array<float, 3 * kThreads, 1>(block);
    over_groups(block, a.flows, [&](std::int64_t group, int count, bool there, std::int64_t flow) {
      const int row = simt::thread_rank(block);
      std::int32_t sample = -1, age = 0;
      float grad_energy = 0.0f;
      if (there) {
        sample = a.read.sample[flow];
        age = a.read.age[flow];
        grad_energy = a.grad_new_energy[flow];
      }
      load_rows(block, a.read.raw + 3 * group, raw, count);
      load_rows(block, a.grad_new_position + 3 * group, place, count);
      const bool stopped = is_sample(sample, a.samples) && a.read.stopped[sample];
      block.barrier();
      if (there) {
        const float x = raw[3 * row], y = raw[3 * row + 1], z = raw[3 * row + 2];
        const float grad_x = place[3 * row], grad_y = place[3 * row + 1], grad_z = place[3 * row + 2];
        const FlowGradients<float> grad =
            moved_backward(a.rule, stopped, x, y, z, age, grad_x, grad_y, grad_z, grad_energy);
        a.grad_energy[flow] = grad.energy;
        a.grad_next_energy[flow] = grad.next_energy;
        raw[3 * row] = grad.raw_x;
        raw[3 * row + 1] = grad.raw_y;
        raw[3 * row + 2] = grad.raw_z;
        place[3 * row] = grad.position_x;
        place[3 * row + 1] = grad.position_y;
        place[3 * row + 2] = grad.position_z;
      }
      block.barrier();
      store_rows(block, raw, a.grad_raw + 3 * group, count);
      store_rows(block, place, a.grad_position + 3 * group, count);  // as above
    });
  }
};

}  // namespace twinbench::energy_flow::flow_movement
