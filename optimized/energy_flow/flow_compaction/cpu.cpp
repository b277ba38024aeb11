// energy_flow.flow_compaction, optimized on the CPU: pieces of the list counted, then scattered, then the rows that are
// left taken a step further. Nothing is allocated after construction.
#include "kernels/energy_flow/flow_compaction/math.h"
#include "optimized/common/rows.h"
#include "optimized/energy_flow/flow_compaction/plan.h"

namespace twinbench::energy_flow::flow_compaction {
namespace {

constexpr std::int64_t kLeastPlaces = 16384;  // of a piece: some 20 us of work
constexpr std::int64_t kMostPieces = 16;
constexpr std::int64_t kBlock = 64;  // rows whose addresses are found before any of them is computed

// `count` rows of `width` units; a row without an address is written as zeros.
TWINBENCH_CPU_CLONES void step_rows(const float* const* from, float* const* to, std::int64_t count,
                                    const float* __restrict gate, const float* __restrict candidate,
                                    std::int64_t width) {
  for (std::int64_t row = 0; row < count; ++row) {
    const float* __restrict const hidden = from[row];
    float* __restrict const next = to[row];
    if (hidden != nullptr)
      for (std::int64_t j = 0; j < width; ++j) next[j] = stepped(hidden[j], gate[j], candidate[j]);
    else
      for (std::int64_t j = 0; j < width; ++j) next[j] = 0.0f;
  }
}

class CpuCompaction final : public Plan {
 public:
  using Plan::Plan;

  void run() override {
    const Arguments& a = arguments_;
    find_survivors();
    const Extent extent = extent_of(a);
    write_counts(a, extent);
    const bool dense = a.rows == Rows::kDense;
    const std::int64_t width = std::int64_t{a.layers} * a.hidden;
    const Pieces rows = Pieces::of(extent.active, kBlock, at::get_num_threads(), kBlock);
    at::parallel_for(0, rows.number(), grain(width * rows.size), [&](std::int64_t first, std::int64_t last) {
      step_listed(extent, first * rows.size, std::min<std::int64_t>(extent.active, last * rows.size), dense);
    });
    if (dense)
      at::parallel_for(0, extent.span, grain(width),
                       [&](std::int64_t first, std::int64_t last) { step_slots(first, last); });
  }

 private:
  // Leaves kept, totals and the shifts of every sample.
  void find_survivors() const {
    const Arguments& a = arguments_;
    const std::int32_t listed = a.listed();
    const Pieces pieces = Pieces::of(listed, kLeastPlaces, kMostPieces, 1);
    std::int32_t live[kMostPieces + 1] = {};
    pieces.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      std::int32_t count = 0;
      for (std::int64_t place = begin; place < end; ++place) {
        a.entry[place] = entry_of(a, a.list[place]);
        count += a.entry[place] >= 0 ? 1 : 0;
      }
      live[piece + 1] = count;
    });
    for (std::int64_t piece = 0; piece < pieces.number(); ++piece) live[piece + 1] += live[piece];
    pieces.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      std::int32_t rank = live[piece];
      for (std::int64_t place = begin; place < end; ++place) {
        const std::int32_t sample = sample_of_entry(a.entry[place]), at = static_cast<std::int32_t>(place);
        const bool known = a.is_sample(sample);
        if (known && (place == 0 || sample_of_entry(a.entry[place - 1]) != sample))
          a.children_before[sample] = children_of_earlier(a.parent, a.children, at);
        if (a.entry[place] >= 0) a.kept_slot[rank] = a.list[place], a.kept[rank++] = at;
        if (known && (place + 1 == listed || sample_of_entry(a.entry[place + 1]) != sample))
          a.survivors_through[sample] = rank;
      }
    });
    a.totals[0] = live[pieces.number()];
    a.totals[1] = children_of_earlier(a.parent, a.children, listed);
  }

  // The rows' numbers and, unless every slot is computed anyway, their hidden states; of children always.
  void step_listed(const Extent& extent, std::int64_t first, std::int64_t last, bool dense) const {
    const Arguments& a = arguments_;
    Item items[kBlock];
    for (std::int64_t block = first; block < last; block += kBlock) {
      const std::int64_t end = std::min(last, block + kBlock);
      for (std::int64_t i = block; i < end; ++i) items[i - block] = item_of(a, extent, static_cast<std::int32_t>(i));
      const std::int64_t survivors = std::clamp<std::int64_t>(extent.survivors - block, 0, end - block);
      fetch(items, end - block);
      move_rows(items, survivors);
      for (std::int64_t i = survivors; i < end - block; ++i)
        move_row(a, items[i], static_cast<std::int32_t>(block + i) - extent.survivors);
      const std::int64_t skipped = dense ? survivors : 0;
      step_items(items + skipped, end - block - skipped);
    }
  }

  // Rows lie apart: what they hold is asked for before any of it is needed.
  void fetch(const Item* items, std::int64_t count) const {
    constexpr std::int64_t kLine = 64 / sizeof(float);
    const Arguments& a = arguments_;
    for (std::int64_t layer = 0; layer < a.layers; ++layer)
      for (std::int64_t i = 0; i < count; ++i) {
        const float* const row = a.flows.hidden + (layer * a.slots + items[i].source) * a.hidden;
        for (std::int64_t unit = 0; unit < a.hidden; unit += kLine) __builtin_prefetch(row + unit);
      }
  }

  // move_row of survivors, a field after the other, so that many of their values are on the way at once.
  void move_rows(const Item* items, std::int64_t count) const {
    const Arguments& a = arguments_;
    for (std::int64_t i = 0; i < count; ++i) a.next_list[items[i].row] = items[i].target;
    for (std::int64_t i = 0; i < count; ++i) a.order[items[i].row] = items[i].place;
    const auto move = [&](const auto* from, auto* to) {
      for (std::int64_t i = 0; i < count; ++i) to[items[i].target] = from[items[i].source];
    };
    move(a.flows.sample, a.next_sample);
    move(a.flows.local_id, a.next_local_id);
    move(a.flows.age, a.next_age);
    move(a.flows.energy, a.next_energy);
    for (std::int64_t axis = 0; axis < 3; ++axis)
      move(a.flows.position + axis * a.slots, a.next_position + axis * a.slots);
  }

  void step_items(const Item* items, std::int64_t count) const {
    const Arguments& a = arguments_;
    const float* from[kBlock];
    float* to[kBlock];
    for (std::int64_t layer = 0; layer < a.layers; ++layer) {
      for (std::int64_t i = 0; i < count; ++i) {
        from[i] = a.flows.hidden + (layer * a.slots + items[i].source) * a.hidden;
        to[i] = a.next_hidden + (layer * a.slots + items[i].target) * a.hidden;
      }
      step_rows(from, to, count, a.gate + layer * a.hidden, a.candidate + layer * a.hidden, a.hidden);
    }
  }

  void step_slots(std::int64_t first, std::int64_t last) const {
    const Arguments& a = arguments_;
    const float* from[kBlock];
    float* to[kBlock];
    for (std::int64_t layer = 0; layer < a.layers; ++layer)
      for (std::int64_t block = first; block < last; block += kBlock) {
        const std::int64_t end = std::min(last, block + kBlock);
        for (std::int64_t slot = block; slot < end; ++slot) {
          const std::int64_t at = (layer * a.slots + slot) * a.hidden;
          from[slot - block] = entry_of(a, static_cast<std::int32_t>(slot)) >= 0 ? a.flows.hidden + at : nullptr;
          to[slot - block] = a.next_hidden + at;
        }
        step_rows(from, to, end - block, a.gate + layer * a.hidden, a.candidate + layer * a.hidden, a.hidden);
      }
  }
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuCompaction>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_compaction
