// Arithmetic of energy_flow.flow_compaction (C13), shared by host and device: which rows the next step has, from which
// slot to which each goes, and the work on a row: a recurrent cell in which each unit sees itself alone. Neuron and
// carrier, which the list really feeds, are components of their own.
#pragma once

#include "kernels/common/math.h"
#include "kernels/energy_flow/flow_compaction/arguments.h"

namespace twinbench::energy_flow::flow_compaction {

// h' of one unit from h: a new value, and how much of the old one stays.
TWINBENCH_HOST_DEVICE float stepped(float hidden, float gate, float candidate) {
  const float stays = kernels::sigmoid(gate * hidden), fresh = kernels::tanh(candidate * hidden);
  return fresh + stays * (hidden - fresh);
}

constexpr std::int32_t kNobody = ~INT32_MAX;  // entry of a place without a sample

// What a place of the list is worth: its sample while the flow is live, else the complement.
TWINBENCH_HOST_DEVICE std::int32_t entry_of(const Arguments& a, std::int32_t slot) {
  if (!a.is_slot(slot)) return kNobody;
  const std::int32_t sample = a.flows.sample[slot];
  if (!a.is_sample(sample)) return kNobody;
  return a.status[slot] == kLiveStatus && !a.stopped[sample] ? sample : ~sample;
}

// What is left when the list has been gone through.
struct Extent {
  std::int32_t listed, survivors, children, active;
  std::int32_t span;  // slots in use before the children
  bool sparse, moves;
};
TWINBENCH_HOST_DEVICE Extent extent_of(const Arguments& a) {
  const std::int32_t listed = a.listed(), survivors = a.totals[0], room = a.slots - listed, found = a.totals[1];
  const std::int32_t children = found > room ? room : found, active = survivors + children;
  const std::int32_t given = a.extent[1], low = given < 0 ? 0 : given, most = a.slots - children;
  const std::int32_t span = low > most ? most : low;
  const bool sparse = is_sparse(active, span + children);
  const bool moves = a.rows == Rows::kMoved || (a.rows == Rows::kAutomatic && a.cleanup && sparse);
  return {listed, survivors, children, active, span, sparse, moves};
}

struct Item {
  std::int32_t source, target;  // slots: of the flow, or of a child's parent; of the storage that is written
  std::int32_t row;             // in the order of samples and local ids
  std::int32_t place;           // in the list before; a child's number after those
};

// How many children of earlier samples stand before survivor i: of those that there is room for, the first ones.
TWINBENCH_HOST_DEVICE std::int32_t shift_of(const Arguments& a, const Extent& extent, std::int32_t i) {
  if (extent.children == 0) return 0;
  const std::int32_t before = a.children_before[a.entry[a.kept[i]]];
  return before < extent.children ? before : extent.children;
}

// Item i of extent.active: first the survivors, then the children.
TWINBENCH_HOST_DEVICE Item item_of(const Arguments& a, const Extent& extent, std::int32_t i) {
  if (i < extent.survivors) {
    const std::int32_t slot = a.kept_slot[i], row = i + shift_of(a, extent, i);
    return {slot, extent.moves ? row : slot, row, a.kept[i]};
  }
  const std::int32_t child = i - extent.survivors, parent = a.parent[child];
  const std::int32_t place = parent >= 0 && parent < extent.listed ? parent : 0;  // of parents that do not ascend
  const std::int32_t slot = a.list[place], sample = sample_of_entry(a.entry[place]);
  const std::int32_t row = (a.is_sample(sample) ? a.survivors_through[sample] : 0) + child;
  return {a.is_slot(slot) ? slot : 0, extent.moves ? row : extent.span + child, row, extent.listed + child};
}

// Everything of a row but its hidden state.
TWINBENCH_HOST_DEVICE void move_row(const Arguments& a, const Item& item, std::int32_t child) {
  const bool born = child >= 0;
  a.next_list[item.row] = item.target;
  a.order[item.row] = item.place;
  a.next_sample[item.target] = a.flows.sample[item.source];
  a.next_local_id[item.target] = born ? a.child_local_id[child] : a.flows.local_id[item.source];
  a.next_age[item.target] = born ? 0 : a.flows.age[item.source];
  a.next_energy[item.target] = born ? a.child_energy[child] : a.flows.energy[item.source];
  for (std::int32_t axis = 0; axis < 3; ++axis)
    a.next_position[axis * std::int64_t{a.slots} + item.target] =
        born ? a.child_position[axis * std::int64_t{a.children} + child]
             : a.flows.position[axis * std::int64_t{a.slots} + item.source];
}

TWINBENCH_HOST_DEVICE void write_counts(const Arguments& a, const Extent& extent) {
  a.counts[0] = extent.active;
  a.counts[1] = extent.survivors;
  a.counts[2] = padding_rows(extent.active);
  a.counts[3] = extent.sparse ? 1 : 0;
}

}  // namespace twinbench::energy_flow::flow_compaction
