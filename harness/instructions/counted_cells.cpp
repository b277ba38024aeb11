// Small cells on the CPU, one of each kind.
#include "harness/instructions/counted_cells.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "harness/parity/held_out.h"
#include "harness/parity/tier.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// Of two cells of one kind: the one with more work, as long as that is little enough to be counted several times under
// an interpreter; else the one with less.
bool is_better(double work, double than, double most) {
  return work <= most ? than > most || work > than : work < than;
}

// In bytes and FLOPs. What is written in operators takes some thousand instructions for each, whatever its size.
double most_work(Variant variant) { return variant == Variant::kOptimized ? 4e6 : 1e5; }

struct Candidate {
  double work = 0;
  Cell cell;
};
using Ways = std::map<Options, Candidate>;

// The fewest ways that between them hold each option's each value. What is written in operators, one after another, has
// no path of its own for two options that meet: what an option adds, it adds beside any other.
Ways holding_each_value(Ways ways) {
  std::set<std::pair<std::string, double>> held;
  const auto added = [&](const Ways::value_type& one) {
    return std::ranges::count_if(one.first, [&](const auto& value) { return held.count(value) == 0; });
  };
  Ways chosen;
  while (!ways.empty()) {
    const auto most = std::ranges::max_element(ways, [&](const auto& one, const auto& other) {
      const auto first = added(one), second = added(other);
      return first != second ? first < second
                             : is_better(other.second.work, one.second.work, most_work(Variant::kBaseline));
    });
    if (!chosen.empty() && added(*most) == 0) break;
    held.insert(most->first.begin(), most->first.end());
    chosen.insert(ways.extract(most));
  }
  return chosen;
}

}  // namespace

double work_of(const Cell& cell) {
  const auto& spec = cell.component->spec;
  const Cost cost = spec.cost(completed(spec.signature, cell.setting()));
  return cost.bytes + cost.flops;
}

Options way_of(const Cell& cell) {
  const Setting setting = completed(cell.component->spec.signature, cell.setting());
  Options way;
  if (cell.variant != Variant::kOptimized && cell.dtype != cell.component->spec.dtypes.front()) return way;
  for (const auto& option : cell.component->spec.signature.options) {
    if (option.of_inputs) continue;
    const double value = setting.option(option.name);
    way[option.name] = is_number(option) ? value != 0 : value;
  }
  return way;
}

bool is_countable(const Cell& cell) {
  const Case& one = *cell.input_case;
  return cell.device == c10::DeviceType::CPU && !is_large(one) && one.specimen.empty() && !one.degenerate;
}

std::vector<Cell> counted_by_instructions(const std::vector<Cell>& cells) {
  using Group = std::tuple<const Component*, Variant, Dtype, Pass>;
  std::map<Group, Ways> groups;
  for (const auto& cell : cells) {
    if (!is_countable(cell)) continue;
    const double work = work_of(cell);
    auto& ways = groups[{cell.component, cell.variant, cell.dtype, cell.input_case->pass}];
    const Options way = way_of(cell);
    const auto found = ways.find(way);
    if (found == ways.end() || is_better(work, found->second.work, most_work(cell.variant))) ways[way] = {work, cell};
  }
  std::vector<Cell> result;
  for (const auto& [group, ways] : groups) {
    const bool optimized = std::get<Variant>(group) == Variant::kOptimized;
    for (const auto& [way, candidate] : optimized ? ways : holding_each_value(ways)) result.push_back(candidate.cell);
  }
  return result;
}

std::vector<Cell> timed_baselines(const std::vector<Cell>& cells) {
  std::map<std::pair<const Component*, Pass>, Cell> least;
  for (const auto& cell : cells) {
    const bool on_the_processor =
        cell.device == c10::DeviceType::CPU && cell.dtype == cell.component->spec.dtypes.front();
    if (cell.variant != Variant::kBaseline || !on_the_processor || !cell.input_case->timed) continue;
    const auto [found, is_first] = least.try_emplace({cell.component, cell.input_case->pass}, cell);
    if (!is_first && work_of(cell) < work_of(found->second)) found->second = cell;
  }
  std::vector<Cell> result;
  for (const auto& [group, cell] : least) result.push_back(cell);
  return result;
}

}  // namespace twinbench
