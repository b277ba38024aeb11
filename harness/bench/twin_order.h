// Which twins are worth timing first.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/bench/twin_timing.h"

namespace twinbench {

// Twins that no earlier record has decided come first, then those whose component bears on a claim of the documents,
// then those with a kernel; then every component's first twin before any component's second, so that a short budget
// sees all components; components in an order that `sample` decides.
std::vector<Twin> most_valuable_first(std::vector<Twin> twins, const std::set<std::string>& decided,
                                      const std::string& sample);

}  // namespace twinbench
