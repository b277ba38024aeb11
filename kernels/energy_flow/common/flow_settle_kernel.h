// The end of a flow step: who stays live, in order, the children that are born, and each sample's counts. Written once
// for the GPU and for the checked run on the host. A sample is one block's, so that its counts need no atomics. In the
// namespace of the component that had it first; the whole backward pass takes it too.
#pragma once

#include "kernels/common/simt_bits.h"
#include "kernels/energy_flow/common/flow_arguments.h"
#include "kernels/energy_flow/common/spawn_requests.h"

namespace twinbench::energy_flow::flow_forward {

namespace simt = kernels::simt;

// Grid: a block a sample. What the step has decided: who stays, in order; then children, in the order of their parents
// and as many as there is room for; and the sample's counts.
struct SettleEach {
  static constexpr int kMaxThreads = kSampleThreads;
  static constexpr int kMinBlocksPerSm = 1;  // few blocks: registers rather than warps

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    run(block, a, [](auto&&...) {});
  }

 protected:
  // keep(row, first slot, children) for every row that asks for any.
  template <class Block, class Keep>
  static TWINBENCH_DEVICE void run(Block& block, const Arguments& a, Keep keep) {
    const std::int64_t sample = block.index().x;
    const std::int32_t begin = a.begin[sample], rows = a.live[sample], first = a.slots.first(sample);
    std::int32_t* const stats = a.stats_of(sample);
    if (rows == 0) {  // the sample has finished, and has no flows
      if (simt::thread_rank(block) == 0) a.next_live[sample] = 0;
      return;
    }
    count(block, a, sample, begin, rows);
    const std::int32_t created = stats[kCreated], free = free_slots(created, a.slots.each);
    const auto stays = [&](std::int32_t i) {
      return a.results.outcome[begin + i] == flow_movement::kStaysActive ? 1 : 0;
    };
    const std::int32_t survivors =
        scan_requests<kSampleThreads>(block, rows, stays, [&](std::int32_t i, std::int32_t before, std::int32_t) {
          a.next.slot[first + before] = a.rows.slot[begin + i];
          a.next.source[first + before] = begin + i;
        });
    const std::int32_t requested = scan_requests<kSampleThreads>(
        block, rows, [&](std::int32_t i) { return a.results.requests[begin + i]; },
        [&](std::int32_t i, std::int32_t before, std::int32_t asked) {
          const std::int32_t children = children_of(free, before, asked);
          keep(begin + i, first + created + before, children);
          for (std::int32_t child = before; child < before + children; ++child) {
            const std::int32_t slot = first + created + child;
            a.next.slot[first + survivors + child] = slot;
            a.next.source[first + survivors + child] = begin + i;
            bear(a, begin + i, slot);
          }
        });
    if (simt::thread_rank(block) > 0) return;
    const std::int32_t admitted = children_of(free, 0, requested);
    stats[kCreated] = created + admitted;
    stats[kRequests] += requested;
    stats[kDroppedSpawn] += requested - admitted;
    a.next_live[sample] = survivors + admitted;
  }

 private:
  // A child: where its parent was before the step.
  static TWINBENCH_DEVICE void bear(const Arguments& a, std::int32_t parent, std::int32_t slot) {
    a.flows.x[slot] = a.results.x[parent];
    a.flows.y[slot] = a.results.y[parent];
    a.flows.z[slot] = a.results.z[parent];
    a.flows.energy[slot] = a.results.child_energy[parent];
    a.flows.age[slot] = 0;
    a.flows.status[slot] = flow_movement::kActive;
  }

  // How many flows ended in each way, and the least of their margins.
  template <class Block>
  static TWINBENCH_DEVICE void count(Block& block, const Arguments& a, std::int64_t sample, std::int32_t begin,
                                     std::int32_t rows) {
    auto ended = simt::shared_array<int, flow_movement::kOutcomes>(block);
    const int thread = simt::thread_rank(block);
    if (thread < flow_movement::kOutcomes) ended[thread] = 0;
    block.barrier();
    float least = 1.0f;
    int own = 0;  // of the outcome that is the lane's number
    for (std::int32_t first = 0; first < rows; first += kSampleThreads) {
      const std::int32_t i = first + thread;
      std::int32_t outcome = flow_movement::kStaysActive;
      if (i < rows) {
        outcome = a.results.outcome[begin + i];
        least = smaller(least, a.results.margin[begin + i]);
      }
      TWINBENCH_UNROLL
      for (int column = 1; column < flow_movement::kOutcomes; ++column) {
        const std::uint32_t same = block.ballot(outcome == column);
        if (simt::lane(block) == column) own += simt::lanes_in(same);
      }
    }
    if (own > 0) simt::atomic_add(block, ended + simt::lane(block), own);
    least = -simt::block_max(block, -least, -1.0f);
    block.barrier();
    if (thread == 0) a.margin[sample] = smaller(a.margin[sample], least);
    if (thread == flow_movement::kStaysActive || thread >= flow_movement::kOutcomes) return;
    const int count = ended[thread];
    a.stats_of(sample)[thread] += count;
  }
};

}  // namespace twinbench::energy_flow::flow_forward
