// Edit distance with swaps, and the message built on it.
#include "harness/terminal/suggest.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace twinbench {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return lower;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Row and column 0 hold a bound that no path may use; row 1 and column 1 are the empty prefixes.
  const std::size_t rows = a.size() + 2, columns = b.size() + 2, bound = a.size() + b.size();
  std::vector<std::size_t> table(rows * columns, bound);
  const auto at = [&](std::size_t row, std::size_t column) -> std::size_t& { return table[row * columns + column]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i + 1, 1) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(1, j + 1) = j;
  std::array<std::size_t, 256> last_row_with{};  // of each letter of b, the last row of a that held it
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t last_match = 0;  // the last column of this row where the letters were equal
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t row = last_row_with[static_cast<unsigned char>(b[j - 1])], column = last_match;
      const bool equal = a[i - 1] == b[j - 1];
      if (equal) last_match = j;
      const std::size_t swapped = at(row, column) + (i - row - 1) + 1 + (j - column - 1);
      at(i + 1, j + 1) =
          std::min({at(i, j) + (equal ? 0u : 1u), at(i + 1, j) + 1, at(i, j + 1) + 1, swapped});
    }
    last_row_with[static_cast<unsigned char>(a[i - 1])] = i;
  }
  return at(a.size() + 1, b.size() + 1);
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.empty()) return "";
  const std::string wanted = lower_case(name);
  std::size_t best = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const std::string known = lower_case(candidate);
    std::size_t distance = edit_distance(wanted, known);
    // "cayley" for "sem.cayley": a whole part of the name is closer than any misspelling of another one.
    if (wanted.size() >= 3 && known.find(wanted) != std::string::npos) distance = std::min<std::size_t>(distance, 1);
    if (distance >= best || distance >= std::max(wanted.size(), known.size())) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kMostListed = 8;
  const std::string nearest = nearest_name(name, candidates);
  if (!nearest.empty()) return "did you mean '" + nearest + "'?";
  if (candidates.empty()) return "there are no names to choose from";
  std::string text = "known: ";
  for (std::size_t i = 0; i < candidates.size() && i < kMostListed; ++i) text += (i > 0 ? ", " : "") + candidates[i];
  if (candidates.size() > kMostListed) text += ", and " + std::to_string(candidates.size() - kMostListed) + " more";
  return text;
}

}  // namespace twinbench
