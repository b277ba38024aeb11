// Checks a component's specification as data, once, when the registry is built: mistakes are named, not met later.
#pragma once

#include <string>

#include "src/component.h"

namespace twinbench {

// The id is what src/components.def lists and the folder is called. Throws Error where the specification gives itself
// another.
void set_id(ComponentSpec& spec, const std::string& pipeline, const std::string& name);

// Throws Error whose field is "src/<pipeline>/<name>/spec.cpp: <entry>": an unknown size symbol, two entries of one
// name, a draw number used twice, an option or size of a case that is unknown, missing or outside its range, a batch
// axis that the shape does not have, an unknown distribution, a specimen that is no switch, is not on, is timed or
// comes first, a planar tensor without its two planes, a formula that is missing.
void check_spec(const ComponentSpec& spec);

}  // namespace twinbench
