// Sort keys of twins.
#include "harness/bench/twin_order.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "harness/runner/share.h"

namespace twinbench {

std::vector<Twin> most_valuable_first(std::vector<Twin> twins, const std::set<std::string>& decided,
                                      const std::string& sample) {
  using Key = std::tuple<bool, bool, bool, std::size_t, std::uint64_t>;
  std::map<const Component*, std::size_t>
      ranks;  // how many twins of the component came before, in the registry's order
  std::vector<std::pair<Key, Twin>> keyed;
  for (const auto& twin : twins) {
    const auto& component = *twin.component;
    keyed.emplace_back(Key{decided.count(twin.name()) > 0, component.spec.claims.empty(), !component.has_kernel,
                           ranks[twin.component]++, name_hash(sample + " " + component.spec.id())},
                       twin);
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(keyed.begin(), keyed.end(), twins.begin(), [](const auto& one) { return one.second; });
  return twins;
}

}  // namespace twinbench
