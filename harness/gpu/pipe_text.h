// Text from a helper process to its parent through a pipe.
#pragma once

#include <string>

namespace twinbench {

// Writes all of it, or stops where the other end has closed.
void write_all(int descriptor, const std::string& text);

// All that comes until the other end closes, or until nothing comes for patience_s seconds.
std::string read_all(int descriptor, double patience_s);

}  // namespace twinbench
