// energy_flow.flow_compaction's kernels on the host executor, in every thread order, against a plain loop: which flows
// stay, where children go, what is moved, and that list, move and mask give the same bits.
#include <algorithm>
#include <tuple>

#include "harness/simt/kernel_testing.h"
#include "kernels/common/grid.h"
#include "kernels/energy_flow/flow_compaction/kernel.h"

namespace twinbench::energy_flow::flow_compaction {
namespace {

using simt::Buffer;
using simt::spread;
using Integers = simt::GuardedBuffer<std::int32_t>;

std::size_t length(std::int64_t count) { return static_cast<std::size_t>(count); }

// Storage in which `listed` flows lie turned around below `span`; every `ends`-th has ended, sample 1 of three has
// stopped, every fifth survivor has two children.
struct Storage {
  Storage(std::int32_t slots_, std::int32_t listed_, std::int32_t span_, std::int32_t ends, std::int32_t layers_ = 2,
          std::int32_t hidden_ = 8)
      : slots(slots_), layers(layers_), hidden(hidden_), listed(listed_), span(span_) {
    for (std::int32_t i = 0; i < slots; ++i) list[i] = -1, sample[i] = i % kSamples, age[i] = i % 13, id[i] = i;
    extent[0] = listed, extent[1] = span;
    for (std::int32_t s = 0; s < kSamples; ++s) stopped[s] = s % 3 == 1;
    for (std::int32_t place = 0; place < listed; ++place) {
      const std::int32_t slot = span - 1 - place;
      list[place] = slot, id[slot] = place;
      sample[slot] = static_cast<std::int32_t>(std::int64_t{place} * kSamples / listed);
      status[slot] = place % ends == ends - 1 ? static_cast<std::uint8_t>(2 + place % 3) : std::uint8_t{1};
    }
    std::int32_t next = 0;
    for (std::int32_t place = 0; place < listed; place += 5)
      for (int twice = 0; twice < 2 && is_live(place) && next < std::min(kChildren, slots - span); ++twice)
        parent[next] = place, child_id[next] = listed + next, ++next;
    born = next;
    for (; next < kChildren; ++next) parent[next] = -1;
  }
  bool is_live(std::int32_t place) const { return status[list[place]] == kLiveStatus && !stopped[sample[list[place]]]; }

  Arguments arguments(Rows rows) const {
    return {.samples = kSamples,
            .slots = slots,
            .places = slots,
            .children = kChildren,
            .layers = layers,
            .hidden = hidden,
            .rows = rows,
            .cleanup = true,
            .list = list.data(),
            .extent = extent.data(),
            .status = status.data(),
            .stopped = stopped.data(),
            .flows = {.sample = sample.data(),
                      .local_id = id.data(),
                      .age = age.data(),
                      .position = position.data(),
                      .energy = energy.data(),
                      .hidden = state.data()},
            .parent = parent.data(),
            .child_local_id = child_id.data(),
            .child_position = child_position.data(),
            .child_energy = child_energy.data(),
            .gate = gate.data(),
            .candidate = candidate.data(),
            .next_list = next_list.data(),
            .order = order.data(),
            .next_sample = next_sample.data(),
            .next_local_id = next_id.data(),
            .next_age = next_age.data(),
            .next_position = next_position.data(),
            .next_energy = next_energy.data(),
            .next_hidden = next_state.data(),
            .counts = counts.data(),
            .entry = entry.data(),
            .kept = kept.data(),
            .kept_slot = kept_slot.data(),
            .tile_counts = tile_counts.data(),
            .children_before = before.data(),
            .survivors_through = through.data(),
            .totals = totals.data()};
  }
  void run(Rows rows, simt::Order order_of_threads, std::int64_t row_blocks = 3) const {
    const Arguments a = arguments(rows);
    const std::int64_t tiles = tiles_of(slots);
    simt::run_clean(CountLive{}, tiles, kThreads, order_of_threads, a);
    simt::run_clean(ScatterLive{}, tiles, kThreads, order_of_threads, a);
    simt::run_clean(StepRows{}, row_blocks, kThreads, order_of_threads, a);
  }

  static constexpr std::int32_t kSamples = 4, kChildren = 30;
  const std::int32_t slots, layers, hidden, listed, span;
  std::int32_t born = 0;
  Integers list{length(slots)}, extent{2}, sample{length(slots)}, id{length(slots)}, age{length(slots)};
  Integers parent{length(kChildren)}, child_id{length(kChildren)};
  simt::GuardedBuffer<std::uint8_t> status{std::vector<std::uint8_t>(length(slots))};
  simt::GuardedBuffer<bool> stopped{length(kSamples)};
  // Aligned as tensors are: the kernels take four units at a time.
  Buffer state{spread(std::int64_t{layers} * slots * hidden, 3), "hidden", 16};
  Buffer gate{spread(std::int64_t{layers} * hidden, 6, 2), "gate", 16};
  Buffer candidate{spread(std::int64_t{layers} * hidden, 7, 2), "candidate", 16};
  Buffer position{spread(3 * slots, 1)}, energy{spread(slots, 2)};
  Buffer child_position{spread(3 * kChildren, 4)}, child_energy{spread(kChildren, 5)};
  Integers next_list{length(slots)}, order{length(slots)}, next_sample{length(slots)}, next_id{length(slots)};
  Integers next_age{length(slots)}, counts{4}, entry{length(slots)}, kept{length(slots)}, kept_slot{length(slots)};
  Integers tile_counts{length(tiles_of(slots))}, before{length(kSamples)}, through{length(kSamples)}, totals{2};
  Buffer next_position{length(3 * slots)}, next_energy{length(slots)}, next_state{state.size(), "next hidden", 16};
};

struct Flow {
  std::int32_t sample, id, place, slot, child;  // slot: of itself or of its parent
};
// By sample and local id.
std::vector<Flow> plain_loop(const Storage& s) {
  std::vector<Flow> flows;
  for (std::int32_t place = 0; place < s.listed; ++place) {
    const std::int32_t slot = s.list[place];
    if (s.is_live(place)) flows.push_back({s.sample[slot], s.id[slot], place, slot, -1});
  }
  for (std::int32_t c = 0; c < s.born; ++c) {
    const std::int32_t slot = s.list[s.parent[c]];
    flows.push_back({s.sample[slot], s.child_id[c], s.listed + c, slot, c});
  }
  std::sort(flows.begin(), flows.end(),
            [](const Flow& a, const Flow& b) { return std::tie(a.sample, a.id) < std::tie(b.sample, b.id); });
  return flows;
}

void expect_rows(const Storage& s, bool moved) {
  const std::vector<Flow> flows = plain_loop(s);
  const auto active = static_cast<std::int32_t>(flows.size());
  ASSERT_EQ(s.counts[0], active);
  EXPECT_EQ(s.counts[1], active - s.born);
  EXPECT_EQ((active + s.counts[2]) % 128, 0);
  EXPECT_LT(s.counts[2], 128);
  EXPECT_EQ(s.counts[3], active < 0.5 * (s.span + s.born));
  for (std::int32_t row = 0; row < active; ++row) {
    const Flow& flow = flows[length(row)];
    const std::int32_t to = s.next_list[row];
    ASSERT_EQ(s.order[row], flow.place) << row;
    ASSERT_EQ(to, moved ? row : flow.child < 0 ? flow.slot : s.span + flow.child) << row;
    ASSERT_EQ(s.next_sample[to], flow.sample);
    ASSERT_EQ(s.next_id[to], flow.id);
    ASSERT_EQ(s.next_age[to], flow.child < 0 ? s.age[flow.slot] : 0);
    ASSERT_EQ(s.next_energy[to], flow.child < 0 ? s.energy[flow.slot] : s.child_energy[flow.child]);
    for (std::int32_t axis = 0; axis < 3; ++axis)
      ASSERT_EQ(s.next_position[axis * s.slots + to], flow.child < 0
                                                          ? s.position[axis * s.slots + flow.slot]
                                                          : s.child_position[axis * Storage::kChildren + flow.child]);
    for (std::int32_t layer = 0; layer < s.layers; ++layer)
      for (std::int32_t unit = 0; unit < s.hidden; ++unit) {
        const std::int32_t weight = layer * s.hidden + unit;
        const auto at = [&](std::int32_t slot) { return (layer * s.slots + slot) * s.hidden + unit; };
        ASSERT_EQ(s.next_state[at(to)], stepped(s.state[at(flow.slot)], s.gate[weight], s.candidate[weight]));
      }
  }
}

TEST(FlowCompactionKernel, KeepsTheLiveFlowsInOrder) {
  for (const auto& [slots, listed, span, ends] :
       {std::tuple{200, 90, 150, 3}, {40, 0, 0, 2}, {64, 64, 64, 1000}, {64, 64, 64, 1}, {2500, 2300, 2450, 2}})
    for (const Rows rows : {Rows::kList, Rows::kMoved})
      for (const auto order : simt::kAllOrders) {
        const Storage s(slots, listed, span, ends);
        s.run(rows, order);
        expect_rows(s, rows == Rows::kMoved);
      }
}

TEST(FlowCompactionKernel, RowsOfAnyWidth) {
  for (const std::int32_t hidden : {1, 7, 36, 132}) {
    const Storage s(60, 40, 50, 4, 3, hidden);
    s.run(Rows::kMoved, simt::Order::kShuffled);
    expect_rows(s, true);
  }
}

// One block has 128 rows in flight at a width of 8, four times: 2,300 rows are five batches and some.
TEST(FlowCompactionKernel, AThreadTakesSeveralBatchesOfRows) {
  for (const auto& [rows, moved] : {std::pair{Rows::kList, false}, {Rows::kMoved, true}, {Rows::kDense, false}}) {
    const Storage s(2500, 2300, 2450, 1000);
    s.run(rows, simt::Order::kForward, 1);
    ASSERT_GT(s.counts[1], 3 * 4 * 128);
    expect_rows(s, moved);
  }
}

// 270 tiles, more than a block has threads: each sums more than one count of an earlier tile.
TEST(FlowCompactionKernel, MoreTilesThanThreads) {
  constexpr std::int32_t kSlots = 270 * static_cast<std::int32_t>(kTile) + 7;
  const Storage s(kSlots, kSlots - 3, kSlots - 1, 3, 1, 1);
  s.run(Rows::kMoved, simt::Order::kForward, 8);
  expect_rows(s, true);
}

TEST(FlowCompactionKernel, ThePredicateIsEvaluatedOnTheDevice) {
  const Storage half(100, 50, 50, 1000, 1, 4), sparse(200, 40, 170, 1000, 1, 4);
  half.run(Rows::kAutomatic, simt::Order::kForward);
  expect_rows(half, false);
  sparse.run(Rows::kAutomatic, simt::Order::kForward);
  expect_rows(sparse, true);
  const Storage later(200, 40, 170, 1000, 1, 4);
  Arguments a = later.arguments(Rows::kAutomatic);
  a.cleanup = false;
  simt::run_clean(CountLive{}, 1, kThreads, simt::Order::kForward, a);
  simt::run_clean(ScatterLive{}, 1, kThreads, simt::Order::kForward, a);
  simt::run_clean(StepRows{}, 1, kThreads, simt::Order::kForward, a);
  expect_rows(later, false);
}

TEST(FlowCompactionKernel, AMaskGivesTheSameRows) {
  const Storage s(300, 90, 250, 3);
  s.run(Rows::kDense, simt::Order::kShuffled);
  expect_rows(s, false);
  EXPECT_EQ(s.next_state[(s.list[2]) * s.hidden], 0.0f);  // computed and masked: place 2 has ended
}

// A set-up that is kept may be given anything later: no other memory is touched.
TEST(FlowCompactionKernel, WhatIsOutOfRangeReachesNoOtherMemory) {
  const auto spoilt = [](const auto& spoil) {
    const Storage s(200, 90, 150, 3);
    for (const Integers* table : {&s.before, &s.through})
      for (std::int32_t& value : *table) value = 0;
    spoil(s);
    for (const Rows rows : {Rows::kList, Rows::kMoved, Rows::kDense}) s.run(rows, simt::Order::kForward);
    EXPECT_LE(s.counts[0], s.slots);
  };
  spoilt([](const Storage& s) { s.list[7] = 1 << 30, s.list[8] = -5; });
  spoilt([](const Storage& s) { s.sample[s.list[7]] = 1 << 30, s.sample[s.list[0]] = -5; });
  spoilt([](const Storage& s) { s.extent[0] = 1 << 30, s.extent[1] = 1 << 30; });
  spoilt([](const Storage& s) { s.extent[0] = -3, s.extent[1] = -3; });
  spoilt([](const Storage& s) { s.extent[1] = s.slots - 1; });  // all slots but one in use, and more children
  spoilt([](const Storage& s) { s.parent[3] = 1 << 30, s.parent[5] = 0; });
  spoilt([](const Storage& s) { std::reverse(s.list.data(), s.list.data() + s.listed); });
}

// 90 of 100 slots hold survivors, and 30 children have parents among them.
TEST(FlowCompactionKernel, MoreChildrenThanRoomAreCut) {
  for (const Rows rows : {Rows::kList, Rows::kMoved, Rows::kDense}) {
    Storage s(100, 90, 90, 1000);
    for (std::int32_t sample = 0; sample < Storage::kSamples; ++sample) s.stopped[sample] = false;
    for (std::int32_t child = 0; child < Storage::kChildren; ++child)
      s.parent[child] = 3 * child, s.child_id[child] = s.listed + child;
    s.born = 10;
    s.run(rows, simt::Order::kForward);
    expect_rows(s, rows == Rows::kMoved);
  }
}

TEST(FlowListMath, ChildrenOfEarlierParents) {
  const std::int32_t parent[] = {2, 2, 5, 9, -1, -1};
  for (const auto& [place, count] : {std::pair{0, 0}, {2, 0}, {3, 2}, {5, 2}, {6, 3}, {10, 4}, {1 << 30, 4}})
    EXPECT_EQ(children_of_earlier(parent, 6, place), count) << place;
  EXPECT_EQ(children_of_earlier(parent, 0, 7), 0);
}

TEST(FlowListMath, PaddingPredicateAndInterval) {
  for (const auto& [active, padding] : {std::pair{0, 0}, {1, 127}, {127, 1}, {128, 0}, {129, 127}})
    EXPECT_EQ(padding_rows(active), padding) << active;
  EXPECT_TRUE(is_sparse(2, 5));
  EXPECT_FALSE(is_sparse(2, 4));
  EXPECT_FALSE(is_sparse(0, 0));
  EXPECT_FALSE(is_sparse(1 << 30, INT32_MAX));
  EXPECT_FALSE(is_cleanup_step(0, 2));
  EXPECT_TRUE(is_cleanup_step(1, 2));
  EXPECT_FALSE(is_cleanup_step(2, 2));
  EXPECT_FALSE(is_cleanup_step(1, 0));
}

}  // namespace
}  // namespace twinbench::energy_flow::flow_compaction
