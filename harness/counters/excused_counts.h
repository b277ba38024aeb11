// What is not asked of counts. On a card: LibTorch's operators copy there what the host reads, its allocator reports
// blocks, its autograd lets go late, and a host that polls a flag issues steps beyond the end. Of a library
// anywhere: its peak (with_settled_peak).
#pragma once

#include <set>
#include <string>

#include "harness/counters/snapshot.h"
#include "src/component.h"
#include "src/registry.h"

namespace twinbench {

// Of a variant in LibTorch's operators: the sizes of a card's blocks depend on which are free.
inline bool counts_blocks(Variant variant, const Setting& setting) {
  return variant != Variant::kOptimized && setting.device.is_cuda();
}

// Whether `measured` is what the host's formula gives. A baseline has more copies on a card, and its bytes are not
// compared. Formulas are those of the way that does the most: where set-up had a choice, the one taken may need less.
inline bool fits_formula(const std::string& counter, std::int64_t due, std::int64_t measured, bool chose,
                         Variant variant, const Setting& setting) {
  static const std::set<std::string> kMore = {"copies", "device_copies", "allocations", "frees"},
                                     kBytes = {"allocated_bytes", "peak_bytes", "live_bytes"};
  if (counts_blocks(variant, setting) && kBytes.count(counter) > 0) return true;
  if (counts_blocks(variant, setting) && kMore.count(counter) > 0) return measured >= due;
  return chose ? measured <= due : measured == due;
}

// What two steady runs have in common.
inline CounterSnapshot comparable(CounterSnapshot counts, const ComponentSpec& spec, Variant variant,
                                  const Setting& setting) {
  if (counts_blocks(variant, setting)) {
    counts.allocated_bytes = counts.peak_bytes = counts.live_bytes = 0;
  } else if (setting.device.is_cuda() && !spec.runs_ahead.empty()) {
    counts.dispatches = 0;
    counts.by_name.clear(), counts.launches_by_kernel.clear(), counts.products_by_shape.clear();
  }
  return counts;
}

// Bytes that outlive a life, given those of the life before: autograd's own thread lets go of the last tensors in this
// life or in the next one, so that a leak is what both have.
inline std::int64_t leaked_in_both(std::int64_t before, std::int64_t now) {
  return (before > 0) == (now > 0) && before != 0 ? now : 0;
}

}  // namespace twinbench
