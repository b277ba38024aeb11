// `twinbench list`: what there is, and the sin and proof of each component.
#include <iostream>
#include <set>

#include "harness/command/command.h"
#include "harness/record/provenance.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// The proof counters' values, for the first timed case of the component, in words.
void print_component(const Component& component) {
  const auto& spec = component.spec;
  std::cout << spec.id() << "  (" << spec.source << ")\n  " << spec.summary << "\n  sin: " << spec.sin
            << "\n  variants: baseline, optimized" << (component.library ? ", library" : "") << "; devices: cpu"
            << (component.has_kernel ? ", cuda, simt" : "") << "; dtypes:";
  for (const auto dtype : spec.dtypes) std::cout << ' ' << to_string(dtype);
  std::cout << "\n  cases:";
  for (const auto& input : spec.cases) std::cout << ' ' << input.name << (input.timed ? "*" : "");
  std::cout << "  (* timed)\n";
  const Case* shown = spec.cases.empty() ? nullptr : &spec.cases.front();
  for (const auto& input : spec.cases)
    if (input.timed && input.pass == Pass::kForward) {
      shown = &input;
      break;
    }
  for (const auto& proof : spec.proof) {
    std::cout << "  proof: " << proof.counter << ", baseline " << proof.formula;
    if (shown && proof.baseline) {  // not where only a run tells
      const Setting setting = completed(spec.signature, {*shown, spec.dtypes.front(), Device()});
      std::cout << "; in " << shown->name << ": baseline " << proof.baseline(setting) << ", optimized "
                << proof.optimized(setting);
    }
    std::cout << '\n';
  }
}

}  // namespace

int list_command(const CommandOptions& options, bool as_json, bool cells) {
  const auto chosen = matching_cells(options);
  std::set<std::string> ids;
  for (const auto& cell : chosen) ids.insert(cell.component->spec.id());
  if (cells) {
    for (const auto& cell : chosen) std::cout << cell.name() << '\n';
  } else if (as_json) {
    auto table = nlohmann::json::array();
    for (auto& row : component_table())
      if (ids.contains(row["id"])) table.push_back(std::move(row));
    std::cout << table.dump(1) << '\n';
  } else {
    for (const auto& component : components())
      if (ids.contains(component.spec.id())) print_component(component);
  }
  return kExitPass;
}

}  // namespace twinbench
