// The fuzzers' seed corpora: small sound files of every format, and the torch files beside the dataset tests.
#pragma once

#include <string>
#include <vector>

namespace twinbench {

// Writes FOLDER/<target>/<seed> for every target <target>_fuzz.cpp.
void make_seeds(const std::string& folder, const std::vector<std::string>& torch_files);

}  // namespace twinbench
