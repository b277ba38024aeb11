// For tests whose cost grows with the list of components: a number of them in each revision, all of them in ci/slow.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "harness/runner/share.h"
#include "src/registry.h"

namespace twinbench {

// TWINBENCH_SAMPLE, else the revision; printed, so that a run can be repeated.
inline std::string sample_of_tests() {
  if (const char* const given = std::getenv("TWINBENCH_SAMPLE")) return given;
  const std::unique_ptr<FILE, int (*)(FILE*)> git(popen("git rev-parse --short=12 HEAD 2>/dev/null", "r"), pclose);
  char line[64] = "unknown";
  if (!git || !std::fgets(line, sizeof line, git.get())) return "unknown";
  return std::string(line, std::string(line).find_last_not_of('\n') + 1);
}

// Those that `wanted` accepts: all where they are at most `most` or TWINBENCH_EVERY is set, else `most` of them, others
// in each revision; what is left out is named.
template <class Wanted>
std::vector<const Component*> components_in_turn(std::size_t most, Wanted wanted) {
  std::vector<const Component*> chosen;
  for (const Component& component : components())
    if (wanted(component)) chosen.push_back(&component);
  if (chosen.size() <= most || std::getenv("TWINBENCH_EVERY")) return chosen;
  const std::string sample = sample_of_tests();
  std::sort(chosen.begin(), chosen.end(), [&sample](const Component* a, const Component* b) {
    return name_hash(sample + a->spec.id()) < name_hash(sample + b->spec.id());
  });
  std::printf("TWINBENCH_SAMPLE=%s leaves out", sample.c_str());
  for (std::size_t i = most; i < chosen.size(); ++i) std::printf(" %s", chosen[i]->spec.id().c_str());
  std::printf("; TWINBENCH_EVERY=1 takes all\n");
  chosen.resize(most);
  return chosen;
}

}  // namespace twinbench
