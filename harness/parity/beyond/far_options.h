// Settings with options that no case has: numbers at the ends of their ranges and beyond all listed ones, and each two
// options together. What is wrong there alone lies outside every case, and outside nearly every held-out draw.
#pragma once

#include <string>
#include <vector>

#include "harness/parity/beyond/far_sizes.h"

namespace twinbench {

// Of every number of each component and pass: both ends of its range and, drawn by `sample`, one beyond the largest and
// one below the least that a case has, each on the case called tiny, on one that sets the option and on two more; less
// far where that is too much work. Each in one of the component's dtypes that the path of `device` has, in turn.
std::vector<FarSetting> options_at_their_ends(const std::vector<const Component*>& components, Device device,
                                              const std::string& sample);

// Of every two options that cases set: a value of one on a case that sets the other one.
std::vector<FarSetting> options_in_pairs(const std::vector<const Component*>& components, Device device,
                                         const std::string& sample);

// The ends of a number's range that lie beyond what is listed, and one value on the way to each, drawn by `key`.
std::vector<double> values_beyond(const Component& component, const OptionSpec& option, const std::string& key);

}  // namespace twinbench
