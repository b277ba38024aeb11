// The specification's hidden_dtype (energy flow 0.3): whether states are stored in bf16 between steps, whatever the
// products' operands are.
#pragma once

#include "src/rounding.h"

namespace twinbench {

inline bool keeps_bf16(const Options& options) {
  const auto found = options.find("hidden_dtype");
  return found != options.end() && found->second == 1;
}
inline bool keeps_bf16(const Setting& s) { return keeps_bf16(s.input_case.options); }

// What stored states are rounded by; nothing in an oracle that rounds nothing.
inline Dtype stores_as(const Setting& s) {
  return keeps_bf16(s) && s.rounds_as() != Dtype::kFp64 ? Dtype::kBf16 : Dtype::kFp32;
}

// Whether a variant rounds anything in software: operands, or the states that it stores.
inline bool rounds_values(const Setting& s) { return rounds_operands(s.rounds_as()) || rounds_operands(stores_as(s)); }

// Modes in which few samples have no close decision.
inline bool sets_decisions_aside(const Setting& s) { return rounds_values(s) || s.rounds_as() == Dtype::kTf32; }

}  // namespace twinbench
