// What a specification's record says of its inputs and outputs, and what its small cases hold, as facts of coverage.
#pragma once

#include <set>
#include <string>

#include "src/component.h"

namespace twinbench {

// "input theta weight floating [planes] drawn normal 3 0 0.5 ..., batch 0, ...": a line for each input and output.
std::set<std::string> signature_facts(const ComponentSpec& spec);

// Sixteen digits of what a case's generated inputs hold. Integers and flags as they are; of other numbers the shape,
// which are 0 or not finite, and how large they are to a quarter of a power of two: last digits may be the machine's.
std::string digits_of(const NamedTensors& inputs);

}  // namespace twinbench
