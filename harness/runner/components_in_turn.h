// For tests whose cost grows with the list of components: a number of them in each revision, all of them in ci/slow.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/runner/share.h"
#include "src/registry.h"

namespace twinbench {

// TWINBENCH_SAMPLE, else the revision; printed, so that a run can be repeated.
inline std::string sample_of_tests() {
  if (const char* const given = std::getenv("TWINBENCH_SAMPLE")) return given;
  static const std::string revision = [] {  // asked for once a process: tests call this for each of their settings
    const std::unique_ptr<FILE, int (*)(FILE*)> git(popen("git rev-parse --short=12 HEAD 2>/dev/null", "r"), pclose);
    char line[64] = "unknown";
    if (!git || !std::fgets(line, sizeof line, git.get())) return std::string("unknown");
    return std::string(line, std::string(line).find_last_not_of('\n') + 1);
  }();
  return revision;
}

// In another order in each revision; in their own where TWINBENCH_EVERY is set.
template <class Thing, class Name>
std::vector<Thing> in_turn(const std::vector<Thing>& all, const Name& name_of) {
  if (std::getenv("TWINBENCH_EVERY")) return all;
  const std::string sample = sample_of_tests();
  std::vector<std::pair<std::uint64_t, std::size_t>> turns;
  for (std::size_t i = 0; i < all.size(); ++i) turns.emplace_back(name_hash(sample + name_of(all[i])), i);
  std::sort(turns.begin(), turns.end());
  std::vector<Thing> taken;
  for (const auto& turn : turns) taken.push_back(all[turn.second]);
  return taken;
}

// `most` of them, others in each revision; all, in their own order, where they are no more or TWINBENCH_EVERY is set.
template <class Thing, class Name>
std::vector<Thing> taken_in_turn(const std::vector<Thing>& all, std::size_t most, const Name& name_of) {
  if (all.size() <= most || std::getenv("TWINBENCH_EVERY")) return all;
  std::vector<Thing> taken = in_turn(all, name_of);
  taken.resize(most);
  return taken;
}

// The same, and says which.
template <class Thing, class Name>
std::vector<Thing> taken_and_told(const std::vector<Thing>& all, std::size_t most, const Name& name_of) {
  const std::vector<Thing> taken = taken_in_turn(all, most, name_of);
  if (taken.size() == all.size()) return taken;
  std::printf("TWINBENCH_SAMPLE=%s takes", sample_of_tests().c_str());
  for (const Thing& one : taken) std::printf(" %s", name_of(one).c_str());
  std::printf("; TWINBENCH_EVERY=1 takes all\n");
  return taken;
}

// Of the components that `wanted` accepts.
template <class Wanted>
std::vector<const Component*> components_in_turn(std::size_t most, Wanted wanted) {
  std::vector<const Component*> all;
  for (const Component& component : components())
    if (wanted(component)) all.push_back(&component);
  return taken_and_told(all, most, [](const Component* one) { return one->spec.id(); });
}

}  // namespace twinbench
