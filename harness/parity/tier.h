// What a parity or counter run looks at: everything, or every check at small sizes and a sample of the large cases.
#pragma once

#include <string>
#include <vector>

#include "harness/parity/parity.h"

namespace twinbench {

enum class Tier { kQuick, kFull };

// "quick" or "full"; throws Error(kUnknownName).
Tier tier_named(const std::string& name);

// A large case is one that is timed: of the sizes that users run. All others are small.
inline bool is_large(const Case& input_case) { return input_case.timed; }

ParityOptions parity_options(Tier tier, Variant variant);

// Why a cell is not looked at in this tier; empty where it is. In the quick tier a component has one large case in one
// dtype, chosen by `sample` (the revision), so that revisions take turns and a run can be repeated. All its variants go
// together.
std::string not_sampled(const Cell& cell, Tier tier, const std::string& sample);

// The order in which cells are worth their time: small cases of components with kernels, small cases of the others,
// large ones; within each, components, and cases within a component, in an order that `sample` decides, so that a
// budget does not always end before the same.
// Cells of a case, then of a dtype, stay together.
std::vector<Cell> most_valuable_first(std::vector<Cell> cells, const std::string& sample);
int value_class(const Cell& cell);  // 0 is worth most

// "<id>/<device>/<case>": what is sharded together, so that its variants and dtypes share their preparation.
std::string case_name(const Cell& cell);

}  // namespace twinbench
