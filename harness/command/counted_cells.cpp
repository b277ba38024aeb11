// Small cells on the CPU, one of each kind.
#include "harness/command/counted_cells.h"

#include <map>
#include <tuple>
#include <utility>

#include "harness/parity/tier.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// What an interpreter of instructions can count in seconds: small cases on the CPU.
bool can_be_counted(const Cell& cell) {
  return cell.device == c10::DeviceType::CPU && !is_large(*cell.input_case) && cell.input_case->specimen.empty();
}

// Where a variant's options send it: switches and choices as they are, numbers by whether they are 0, which turns off
// what they are of. Options of the generated inputs send it nowhere. In the first numeric mode all ways are gone, in
// each other one.
Options way_of(const Cell& cell, const Setting& setting) {
  Options way;
  if (cell.dtype != cell.component->spec.dtypes.front()) return way;
  for (const auto& option : cell.component->spec.signature.options) {
    if (option.of_inputs) continue;
    const bool number = option.kind == OptionSpec::Kind::kCount || option.kind == OptionSpec::Kind::kReal;
    const double value = setting.option(option.name);
    way[option.name] = number ? value != 0 : value;
  }
  return way;
}

// Of two cells of one kind: the one with more work, as long as that is little enough to be counted several times under
// an interpreter; else the one with less.
bool is_better(double work, double than) {
  constexpr double kMost = 4e6;  // bytes and FLOPs
  return work <= kMost ? than > kMost || work > than : work < than;
}

}  // namespace

std::vector<Cell> counted_by_instructions(const std::vector<Cell>& cells) {
  using Kind = std::tuple<const Component*, Variant, Dtype, Pass, Options>;
  std::map<Kind, std::pair<double, Cell>> chosen;
  for (const auto& cell : cells) {
    if (!can_be_counted(cell)) continue;
    const auto& spec = cell.component->spec;
    const Setting setting = completed(spec.signature, cell.setting());
    const Cost cost = spec.cost(setting);
    const double work = cost.bytes + cost.flops;
    const Kind kind{cell.component, cell.variant, cell.dtype, cell.input_case->pass, way_of(cell, setting)};
    const auto found = chosen.find(kind);
    if (found == chosen.end() || is_better(work, found->second.first)) chosen[kind] = {work, cell};
  }
  std::vector<Cell> result;
  for (const auto& [kind, cell] : chosen) result.push_back(cell.second);
  return result;
}

}  // namespace twinbench
