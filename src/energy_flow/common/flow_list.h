// The list of flows that a step has worked through (C13), as set-ups are given it: what can be wrong with it.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "src/common/error.h"
#include "src/named_tensors.h"

namespace twinbench::energy_flow {

// int32 list [flows], sample and local_id [slots], extent [2], parent and child_local_id [children], bool stopped
// [samples]. Throws kOutOfRange naming tensor, value and remedy.
inline void check_flow_list(const NamedTensors& inputs) {
  const auto refuse = [](const char* field, std::int64_t value, const std::string& where, const std::string& remedy) {
    throw Error(ErrorKind::kOutOfRange, field, std::to_string(value) + where, remedy);
  };
  const auto host = [&](const char* name) { return inputs[name].cpu().contiguous(); };
  const at::Tensor extents = host("extent"), lists = host("list"), samples = host("sample"), ids = host("local_id");
  const at::Tensor parents = host("parent");
  const auto* const list = lists.const_data_ptr<std::int32_t>();
  const auto* const sample = samples.const_data_ptr<std::int32_t>();
  const auto* const id = ids.const_data_ptr<std::int32_t>();
  const std::int64_t slots = samples.numel(), batch = inputs["stopped"].numel();
  const std::int64_t listed = extents.const_data_ptr<std::int32_t>()[0],
                     span = extents.const_data_ptr<std::int32_t>()[1];
  if (listed < 0 || listed > lists.numel() || span < listed || span > slots)
    throw Error(ErrorKind::kOutOfRange, "extent", std::to_string(listed) + ", " + std::to_string(span),
                "give flows in the list, at most " + std::to_string(lists.numel()) +
                    ", then slots in use, at least as many" + " and at most " + std::to_string(slots));
  for (std::int64_t i = 0; i < listed; ++i) {
    const std::string where = " at place " + std::to_string(i);
    if (list[i] < 0 || list[i] >= span) refuse("list", list[i], where, "give slots below " + std::to_string(span));
    const std::int32_t own = sample[list[i]];
    if (own < 0 || own >= batch)
      refuse("sample", own, where, "the batch has " + std::to_string(batch) + " samples, the first one is 0");
    const auto key = [&](std::int64_t place) { return std::pair(sample[list[place]], id[list[place]]); };
    if (i > 0 && key(i) <= key(i - 1)) refuse("list", list[i], where, "list flows by sample, then by local id");
  }
  // Children ascend by parent, those of one sample by local id, above those of its flows; from the first -1 on, none.
  const at::Tensor child_ids = host("child_local_id");
  const auto* const parent = parents.const_data_ptr<std::int32_t>();
  const auto* const child_id = child_ids.const_data_ptr<std::int32_t>();
  std::int64_t children = 0;
  while (children < parents.numel() && parent[children] != -1) ++children;
  std::int64_t last = 0;  // place of a sample's last flow
  for (std::int64_t i = 0; i < parents.numel(); ++i) {
    const std::string where = " of child " + std::to_string(i);
    const std::int32_t least = i >= children ? -1 : i > 0 ? parent[i - 1] : 0;
    if (parent[i] < least || parent[i] >= (i >= children ? 0 : listed))
      refuse("parent", parent[i], where, "give places of the list, ascending, then -1 to the end");
    if (i >= children) continue;
    const std::int32_t own = sample[list[parent[i]]];
    const bool first = i == 0 || sample[list[parent[i - 1]]] != own;
    last = std::max<std::int64_t>(last, parent[i]);
    while (last + 1 < listed && sample[list[last + 1]] == own) ++last;
    if (child_id[i] <= (first ? id[list[last]] : child_id[i - 1]))
      refuse("child_local_id", child_id[i], where, "give ascending ones, above those of the sample's flows");
  }
  if (children > slots - span)
    refuse("parent", children, " children", "there are " + std::to_string(slots - span) + " slots beyond those in use");
}

}  // namespace twinbench::energy_flow
