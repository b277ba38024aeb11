// Small cells on the CPU, one of each kind.
#include "harness/command/counted_cells.h"

#include <map>
#include <tuple>
#include <utility>

#include "harness/parity/tier.h"

namespace twinbench {
namespace {

// What an interpreter of instructions can count in seconds: small cases on the CPU.
bool can_be_counted(const Cell& cell) {
  return cell.device == c10::DeviceType::CPU && !is_large(*cell.input_case) && cell.input_case->specimen.empty();
}

}  // namespace

std::vector<Cell> counted_by_instructions(const std::vector<Cell>& cells) {
  using Kind = std::tuple<const Component*, Variant, Dtype, Pass, Options>;
  std::map<Kind, std::pair<double, Cell>> chosen;
  for (const auto& cell : cells) {
    if (!can_be_counted(cell)) continue;
    double elements = 1;
    for (const auto& [symbol, size] : cell.input_case->sizes) elements *= static_cast<double>(size);
    const Kind kind{cell.component, cell.variant, cell.dtype, cell.input_case->pass, cell.input_case->options};
    const auto found = chosen.find(kind);
    if (found == chosen.end() || elements > found->second.first) chosen[kind] = {elements, cell};
  }
  std::vector<Cell> result;
  for (const auto& [kind, cell] : chosen) result.push_back(cell.second);
  return result;
}

}  // namespace twinbench
