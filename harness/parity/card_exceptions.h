// What is not asked of LibTorch's own operators on a card, where a specification says why.
#pragma once

#include <set>
#include <string>

#include "src/component.h"
#include "src/registry.h"

namespace twinbench {

// Why two runs of the variant have other bits: "" where they must have the same.
inline std::string why_never_the_same_bits(const ComponentSpec& spec, Variant variant, const Setting& setting) {
  const auto why = spec.unordered_on_card.find(to_string(variant));
  if (!setting.device.is_cuda() || why == spec.unordered_on_card.end()) return "";
  return "no run has the bits of another: " + why->second;
}

// Checks whose verdict is by the bits of two runs.
inline bool asks_for_the_same_bits(const std::string& check) {
  static const std::set<std::string> kAsk = {"determinism",        "guard_bands", "stale", "batch_invariance",
                                             "poisoned_neighbour", "relation",    "late",  "instances"};
  return kAsk.count(check) > 0;
}

// Why the library's answer to the case is another than the specified one: "" where it must be that.
inline std::string library_limit_of(const ComponentSpec& spec, Variant variant, const Setting& setting) {
  const auto why = spec.library_limits.find(setting.input_case.name);
  return variant == Variant::kLibrary && setting.device.is_cuda() && why != spec.library_limits.end() ? why->second
                                                                                                      : "";
}

}  // namespace twinbench
