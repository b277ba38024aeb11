// The compaction's kernels, written once for the GPU and for the checked run on the host: live flows of each tile of
// the list counted, their places scanned and scattered, and the rows that are left taken a step further. How many there
// are, only the device knows.
#pragma once

#include "kernels/common/simt_bits.h"
#include "kernels/common/simt_scan.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/flow_compaction/math.h"

namespace twinbench::energy_flow::flow_compaction {

namespace simt = kernels::simt;

constexpr int kWarps = kThreads / simt::kWarpSize;

// Grid: tiles_of(places). Blocks beyond the list end at once.
struct CountLive {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const std::int32_t first = static_cast<std::int32_t>(block.index().x * kTile), listed = a.listed();
    if (first >= listed) return;
    std::int32_t slots[kEach], entries[kEach];
    int live = 0;
    TWINBENCH_UNROLL
    for (int k = 0; k < kEach; ++k) {
      const std::int32_t place = first + k * kThreads + simt::thread_rank(block);
      slots[k] = place < listed ? a.list[place] : -1;
    }
    TWINBENCH_UNROLL
    for (int k = 0; k < kEach; ++k) {
      entries[k] = entry_of(a, slots[k]);
      live += entries[k] >= 0 ? 1 : 0;
    }
    TWINBENCH_UNROLL
    for (int k = 0; k < kEach; ++k) {
      const std::int32_t place = first + k * kThreads + simt::thread_rank(block);
      if (place < listed) a.entry[place] = entries[k];
    }
    const int count = simt::block_sum(block, live);
    if (simt::thread_rank(block) == 0) a.tile_counts[block.index().x] = count;
  }
};

// The same grid. Where a sample begins in the list and where it ends, the thread of that place leaves what its rows and
// its children are shifted by.
struct ScatterLive {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const std::int32_t tile = static_cast<std::int32_t>(block.index().x), listed = a.listed();
    const std::int32_t first = tile * static_cast<std::int32_t>(kTile), thread = simt::thread_rank(block);
    if (tile > 0 && first >= listed) return;
    int before = 0;
    for (std::int32_t i = thread; i < tile; i += kThreads) before += a.tile_counts[i];
    const int base = simt::block_sum(block, before);
    auto counts = simt::shared_array<int, simt::kWarpSize>(block);  // a warp's, of each of its kEach turns
    auto entries = simt::shared_array<std::int32_t, static_cast<int>(kTile) + 2>(block);  // with both neighbours
    std::int32_t own[kEach];
    std::uint32_t live[kEach];
    TWINBENCH_UNROLL
    for (int k = 0; k < kEach; ++k) {
      const std::int32_t place = first + k * kThreads + thread;
      own[k] = place < listed ? a.entry[place] : kNobody;
      entries[1 + k * kThreads + thread] = own[k];
    }
    if (thread < 2) {
      const std::int32_t place = thread == 0 ? first - 1 : first + static_cast<std::int32_t>(kTile);
      entries[thread == 0 ? 0 : static_cast<int>(kTile) + 1] = place >= 0 && place < listed ? a.entry[place] : kNobody;
    }
    TWINBENCH_UNROLL
    for (int k = 0; k < kEach; ++k) {
      live[k] = block.ballot(own[k] >= 0);
      if (simt::lane(block) == 0) counts[k * kWarps + simt::warp(block)] = simt::lanes_in(live[k]);
    }
    block.barrier();
    const int count = counts[simt::lane(block)], through = simt::warp_inclusive_sum(block, count);
    const std::uint32_t lower = (1u << simt::lane(block)) - 1u;
    TWINBENCH_UNROLL
    for (int k = 0; k < kEach; ++k) {
      const std::int32_t place = first + k * kThreads + thread;
      const int of_earlier = block.shuffle_index(through - count, k * kWarps + simt::warp(block));
      const std::int32_t rank = base + of_earlier + simt::lanes_in(live[k] & lower);
      if (place >= listed) continue;
      const std::int32_t slot = a.list[place];
      if (own[k] >= 0) {
        a.kept[rank] = place;
        a.kept_slot[rank] = slot;
      }
      const int at = k * kThreads + thread;
      const std::int32_t left = entries[at], right = entries[at + 2];
      mark_borders(a, place, sample_of_entry(left), own[k], sample_of_entry(right), rank);
    }
    const int all = block.shuffle_index(through, simt::kWarpSize - 1);
    if (thread == 0 && first + kTile >= listed) a.totals[0] = base + all;
    if (thread == 0 && tile == 0) a.totals[1] = children_of_earlier(a.parent, a.children, listed);
  }

 private:
  static_assert(kWarps * kEach == simt::kWarpSize, "a warp's lanes scan all turns of all warps");

  static TWINBENCH_DEVICE void mark_borders(const Arguments& a, std::int32_t place, std::int32_t before,
                                            std::int32_t own, std::int32_t after, std::int32_t rank) {
    const std::int32_t sample = sample_of_entry(own);
    if (!a.is_sample(sample)) return;
    if (before != sample) a.children_before[sample] = children_of_earlier(a.parent, a.children, place);
    if (after != sample) a.survivors_through[sample] = rank + (own >= 0 ? 1 : 0);
  }
};

// Grid: blocks that stride over the rows. Neighbouring threads take neighbouring units of a row; four rows are in
// flight: found first, then loaded, then computed.
struct StepRows {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const Extent extent = extent_of(a);
    const std::int64_t own = simt::global_index(block), threads = simt::global_count(block);
    if (own == 0) write_counts(a, extent);
    for (std::int64_t i = own; i < extent.active; i += threads) {
      const auto item = static_cast<std::int32_t>(i);
      move_row(a, item_of(a, extent, item), item - extent.survivors);
    }
    if (kernels::allows_four(a.hidden, a.flows.hidden, a.gate, a.candidate, a.next_hidden))
      step<4>(a, extent, own, threads);
    else
      step<1>(a, extent, own, threads);
  }

 private:
  static constexpr int kBatch = 4;  // rows whose units a thread has in flight

  struct Way {
    std::int32_t source, target;
    bool live;
  };

  template <int kWidth>
  static TWINBENCH_DEVICE void step(const Arguments& a, const Extent& extent, std::int64_t own, std::int64_t threads) {
    const bool dense = a.rows == Rows::kDense;
    step_items<kWidth>(a, dense ? extent.span : extent.survivors, own, threads, [&](std::int32_t i) {
      if (dense) return Way{i, i, entry_of(a, i) >= 0};
      const std::int32_t slot = a.kept_slot[i];
      return Way{slot, extent.moves ? i + shift_of(a, extent, i) : slot, true};
    });
    step_items<kWidth>(a, extent.children, own, threads, [&](std::int32_t child) {
      const Item item = item_of(a, extent, extent.survivors + child);
      return Way{item.source, item.target, true};
    });
  }

  // find(i): the way of item i of `items`.
  template <int kWidth, class Find>
  static TWINBENCH_DEVICE void step_items(const Arguments& a, std::int32_t items, std::int64_t own,
                                          std::int64_t threads, Find find) {
    const std::int32_t parts = a.hidden / kWidth;
    std::int32_t each = 1;  // threads of a row
    while (each < parts && each < simt::kWarpSize) each *= 2;
    const std::int64_t first = own / each, apart = threads / each;
    for (std::int32_t layer = 0; layer < a.layers; ++layer)
      for (std::int32_t part = static_cast<std::int32_t>(own % each); part < parts; part += each) {
        const std::int32_t unit = part * kWidth;
        const kernels::Floats<kWidth> gate = kernels::load<kWidth>(a.gate + layer * a.hidden + unit);
        const kernels::Floats<kWidth> candidate = kernels::load<kWidth>(a.candidate + layer * a.hidden + unit);
        const std::int64_t storage = std::int64_t{layer} * a.slots * a.hidden + unit;
        for (std::int64_t i = first; i < items; i += kBatch * apart) {
          Way way[kBatch];
          kernels::Floats<kWidth> hidden[kBatch];
          TWINBENCH_UNROLL
          for (int b = 0; b < kBatch; ++b)
            if (i + b * apart < items) way[b] = find(static_cast<std::int32_t>(i + b * apart));
          TWINBENCH_UNROLL
          for (int b = 0; b < kBatch; ++b)
            if (i + b * apart < items)
              hidden[b] = kernels::load<kWidth>(a.flows.hidden + storage + std::int64_t{way[b].source} * a.hidden);
          TWINBENCH_UNROLL
          for (int b = 0; b < kBatch; ++b) {
            if (i + b * apart >= items) continue;
            kernels::Floats<kWidth> next;
            TWINBENCH_UNROLL
            for (int j = 0; j < kWidth; ++j)
              next.of[j] = way[b].live ? stepped(hidden[b].of[j], gate.of[j], candidate.of[j]) : 0.0f;
            kernels::store(a.next_hidden + storage + std::int64_t{way[b].target} * a.hidden, next);
          }
        }
      }
  }
};

}  // namespace twinbench::energy_flow::flow_compaction
