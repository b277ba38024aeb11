// Matching of places, by the surest way first.
#include "harness/model/kernel_places.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "src/formats/text_file.h"

namespace twinbench::model {
namespace {

using kernels::simt::Access;
using kernels::simt::SourcePlace;

constexpr int kFarthestLine = 2;

struct Line {
  std::string file;
  int line;
  friend bool operator==(const Line&, const Line&) = default;
};

Line own_line(const SourcePlace& at) { return {at.file, at.line}; }
Line innermost(const SourcePlace& at) {
  return at.through_file.empty() ? own_line(at) : Line{at.through_file, at.through_line};
}
// Ways in which a card's place may be the host's, the surest first.
bool is_same(const SourcePlace& card, const SourcePlace& host) {
  return own_line(card) == own_line(host) && innermost(card) == innermost(host);
}
bool is_same_call(const SourcePlace& card, const SourcePlace& host) {
  return own_line(card) == own_line(host) && innermost(card).file == innermost(host).file;
}
bool is_same_access(const SourcePlace& card, const SourcePlace& host) { return innermost(card) == innermost(host); }
bool is_of_helper(const SourcePlace& card, const SourcePlace& host) {
  return host.through_file.empty() && host.file.starts_with("kernels/common/") && innermost(card).file == host.file;
}

const std::vector<std::string>& lines_of(const std::string& file) {
  static thread_local std::map<std::string, std::vector<std::string>> known;
  const auto found = known.find(file);
  if (found != known.end()) return found->second;
  std::vector<std::string> lines = lines_if_any(file, "source of a kernel");
  for (std::string& text : lines) text.erase(0, text.find_first_not_of(" \t"));
  return known.emplace(file, std::move(lines)).first->second;
}

// Gives every place of `chosen` that has no group yet to one group, and adds to it.
void add_to(CountedWords& words, const std::vector<std::size_t>& chosen, double more) {
  int group = -1;
  for (const std::size_t place : chosen)
    if (words.group_of[place] >= 0) group = words.group_of[place];
  if (group < 0) {
    group = static_cast<int>(words.words.size());
    words.words.push_back(0);
  }
  for (const std::size_t place : chosen)
    if (words.group_of[place] < 0) words.group_of[place] = group;
  words.words[static_cast<std::size_t>(group)] += more;
}

}  // namespace

std::vector<CountedPlace> counted_places(const kernels::simt::LaunchCounts& counts) {
  const double warps = static_cast<double>((counts.block.x * counts.block.y * counts.block.z + 31) / 32);
  std::vector<CountedPlace> found = {
      {"warps", {}, static_cast<double>(counts.blocks) * warps},
      {"barriers", {}, static_cast<double>(counts.barriers) * warps},
      {"products", {}, static_cast<double>(counts.bf16_products + counts.tf32_products)}};
  for (const auto& site : counts.sites) {
    const char* verb = site.access == Access::kRead ? "load" : site.access == Access::kWrite ? "store" : "atomic";
    found.push_back({site.shared ? std::string("shared ") + verb : verb, kernels::simt::place_of(site.site),
                     static_cast<double>(site.requests) * site.bytes / 4});
  }
  return found;
}

JoinedPlaces join(const std::vector<KernelPlace>& places, const std::vector<CountedPlace>& counted) {
  JoinedPlaces joined;
  CountedWords& words = joined.words;
  words.group_of.assign(places.size(), -1);
  std::vector<CountedPlace> open = counted;
  // Joins what is open by a rule that gives the places of one.
  const auto pass = [&](const auto& places_for) {
    std::vector<CountedPlace> left;
    for (const CountedPlace& one : open) {
      const std::vector<std::size_t> chosen = places_for(one);
      if (chosen.empty()) {
        left.push_back(one);
        continue;
      }
      add_to(words, chosen, one.words);
      if (!one.at.file.empty()) joined.known += one.words;
    }
    open = std::move(left);
  };
  const auto all_that = [&](const auto& fits) {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (fits(i)) chosen.push_back(i);
    return chosen;
  };
  for (const CountedPlace& one : counted)
    if (!one.at.file.empty()) joined.all += one.words;
  std::vector<int> before;
  for (const auto& fits : {is_same, is_same_call, is_same_access, is_of_helper}) {
    before = words.group_of;
    pass([&](const CountedPlace& one) {
      return all_that(
          [&](std::size_t i) { return before[i] < 0 && places[i].what == one.what && fits(places[i].at, one.at); });
    });
  }
  // Of a statement's lines, and of statements that are moved past each other, the compiler may name another one.
  pass([&](const CountedPlace& one) {
    const auto distance = [&](std::size_t i) {
      const bool near = places[i].what == one.what && places[i].at.file == one.at.file;
      return near ? std::abs(places[i].at.line - one.at.line) : kFarthestLine + 1;
    };
    int least = kFarthestLine;
    for (std::size_t i = 0; i < places.size(); ++i) least = std::min(least, distance(i));
    std::vector<std::size_t> chosen = all_that([&](std::size_t i) { return distance(i) == least; });
    if (!chosen.empty()) chosen.resize(1);
    return chosen;
  });
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (words.group_of[i] >= 0) continue;
    bool unknown = false;
    for (const CountedPlace& one : open)
      unknown |= one.what == places[i].what && innermost(one.at).file == innermost(places[i].at).file;
    if (!unknown) add_to(words, {i}, 0);
  }
  return joined;
}

int present_line(const std::string& file, int line, const std::string& text) {
  const std::vector<std::string>& lines = lines_of(file);
  int nearest = 0;
  for (int now = 1; now <= static_cast<int>(lines.size()); ++now)
    if (lines[static_cast<std::size_t>(now - 1)].starts_with(text) &&
        (nearest == 0 || std::abs(now - line) < std::abs(nearest - line)))
      nearest = now;
  return nearest == 0 ? line : nearest;
}

}  // namespace twinbench::model
