// The nearest known name to one that is not known, for error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace twinbench {

// Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours that turn a into b, a swapped
// pair open to further edits. In bytes.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate closest to `name`, letter case aside; the first of equals. One that contains `name` as a whole counts as
// close. Empty where none is near: more than a third of the letters (at least two) would have to change.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "did you mean 'sem.cayley'?", or "known: a, b, c" where nothing is near (the first eight), for an Error's remedy.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace twinbench
