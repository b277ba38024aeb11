// "Did you mean ...": the known names closest to a mistyped one.
#pragma once

#include <string>
#include <vector>

namespace twinbench {

// Up to `most` of `known`, nearest first by edit distance (insert, delete, replace, swap of neighbours); names further
// than half the length of `wrong` are left out, except that names containing it are always kept.
std::vector<std::string> nearest_names(const std::string& wrong, const std::vector<std::string>& known,
                                       std::size_t most = 3);

// "; did you mean 'a' or 'b'?", or "" where nothing is near.
std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& known);

}  // namespace twinbench
