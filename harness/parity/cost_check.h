// A declared cost against what is counted. One that is too high calls honest code impossible, one that is too low hides
// how far from the roof a variant is.
#pragma once

#include <string>

#include "harness/parity/check_result.h"
#include "src/registry.h"

namespace twinbench {

struct CountedCost {
  // Every input read once and every output written once; weights are two bytes an element where the mode rounds them,
  // for a variant may keep them so from set-up on.
  double bytes = 0;
  double output_bytes = 0;
  double product_flops = 0;  // of the baseline's matrix products, from their operands' shapes: 2 m n k
  double needed_flops = 0;   // of them without what it forms again (ComponentSpec::baseline_repeats)
  double other_flops = 0;    // at most: one for each element that its other operators read or write, whichever is more
};

// The baseline's, run once in the setting, which must be on the CPU and complete.
CountedCost counted_cost(const Component& component, const Setting& setting, const NamedTensors& generated);

// Empty, or what is wrong: more bytes or FLOPs than were counted, or so few that the roof is hidden: less than a
// quarter of what the outputs hold (batched components, whose inputs are all used: of all bytes), or of the
// products that are needed.
std::string cost_difference(const ComponentSpec& spec, const Cost& declared, const CountedCost& counted);

// The check: cost_difference() of the component's own cost, and what its loops are said to handle (host_bytes) against
// twice the bytes that were counted. Skips where it declares no cost.
void check_cost(const Component& component, const Setting& setting, const NamedTensors& generated, CheckResult& result);

}  // namespace twinbench
