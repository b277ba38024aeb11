// Optimal-string-alignment distance, and the phrase built from the nearest names.
#include "src/common/nearest_name.h"

#include <algorithm>
#include <utility>

namespace twinbench {
namespace {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::vector<std::string> nearest_names(const std::string& wrong, const std::vector<std::string>& known,
                                       std::size_t most) {
  constexpr std::size_t kLongestName = 256;
  if (wrong.size() > kLongestName) return {};
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& name : known) {
    const bool contains = !wrong.empty() && name.find(wrong) != std::string::npos;
    const std::size_t distance = contains ? 0 : edit_distance(wrong, name);
    if (contains || distance <= std::max<std::size_t>(2, wrong.size() / 2)) ranked.emplace_back(distance, name);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> nearest;
  for (const auto& [distance, name] : ranked)
    if (nearest.size() < most) nearest.push_back(name);
  return nearest;
}

std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& known) {
  std::string phrase;
  for (const auto& name : nearest_names(wrong, known))
    phrase += (phrase.empty() ? "; did you mean '" : " or '") + name + "'";
  return phrase.empty() ? phrase : phrase + "?";
}

}  // namespace twinbench
