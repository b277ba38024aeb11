// Whether a component's parallel code is ever cut into more than one piece: what no case splits, no case checks.
#pragma once

#include <string>
#include <vector>

#include "harness/counters/pins.h"
#include "src/registry.h"

namespace twinbench {

// Empty, or the first pass of the component whose optimized CPU cells are all pinned with neither a parallel region nor
// a thread: races between pieces and errors at their borders would have no case to show in. Passes with a cell that is
// not pinned are not judged, and neither is a component with no piece in any pass: it works in one.
std::string never_in_pieces(const Component& component, const Pins& pins);

}  // namespace twinbench
