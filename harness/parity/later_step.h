// One run judged by itself, from the state that the run before it left: runs so late that no series is followed there.
#pragma once

#include <string>

#include "src/registry.h"

namespace twinbench {

// What `after`, the outputs of a run on `inputs` (as generated) that found the states in `before`, does wrong by far
// more than honest arithmetic can: empty, or the output and why. Empty too where a state is no output, or is one that
// the baseline refuses.
std::string wrong_step_from(const Component& component, const Setting& setting, NamedTensors inputs,
                            const NamedTensors& before, const NamedTensors& after);

}  // namespace twinbench
