// `twinbench check`: judges the outputs in a file against the oracle on the inputs in the same file.
#include <ATen/ATen.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "harness/command/command.h"
#include "harness/command/tensor_file.h"
#include "harness/parity/reference.h"
#include "src/common/error.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// Sizes and options as the file's metadata has them; a file without them is judged at the case's own sizes.
template <class Map>
void take_from(const std::map<std::string, std::string>& metadata, const std::string& key, Map& into) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return;
  try {
    const nlohmann::json given = nlohmann::json::parse(found->second);
    for (const auto& [name, value] : given.get<std::map<std::string, nlohmann::json>>()) {
      if (!into.count(name)) throw Error(ErrorKind::kUnknownName, "metadata " + key, name, "the case has no such name");
      if (std::is_integral_v<typename Map::mapped_type> && !value.is_number_integer())
        throw Error(ErrorKind::kCorrupt, "metadata " + key + " " + name, value.dump(), "give a whole number");
      into[name] = value.template get<typename Map::mapped_type>();
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::kCorrupt, "metadata " + key, found->second,
                "it must be a JSON object, as `twinbench dump` writes it");
  }
}

// The file must hold exactly the inputs that the component generates, and every output it declares.
void check_names(const TensorFile& file, const NamedTensors& expected, const std::vector<OutputSpec>& outputs) {
  for (const auto& [name, tensor] : expected) {
    if (!file.inputs.contains(name))
      throw Error(ErrorKind::kBadFile, "tensor input." + name, "missing",
                  "`twinbench dump` writes every input the cell needs");
    const auto& given = file.inputs[name];
    if (given.scalar_type() != tensor.scalar_type())
      throw Error(ErrorKind::kBadDtype, "tensor input." + name, c10::toString(given.scalar_type()),
                  std::string("give ") + c10::toString(tensor.scalar_type()));
    if (!given.sizes().equals(tensor.sizes())) {
      std::ostringstream have, want;
      have << given.sizes();
      want << tensor.sizes();
      throw Error(ErrorKind::kBadShape, "tensor input." + name, have.str(),
                  "the sizes in the metadata make it " + want.str());
    }
  }
  for (const auto& output : outputs)
    if (!file.outputs.contains(output.name))
      throw Error(ErrorKind::kBadFile, "tensor output." + output.name, "missing", "give every output of the cell");
}

}  // namespace

int check_command(const CommandOptions&, const std::string& name, const std::string& from) {
  const auto cell = find_cell(name);
  auto file = read_tensor_file(from);
  Setting setting{*cell.input_case, cell.dtype};
  setting.input_case.options = cell.setting().input_case.options;
  setting.device = c10::Device(c10::DeviceType::CPU);  // a file is judged on the CPU, wherever it was made
  take_from(file.metadata, "sizes", setting.input_case.sizes);
  take_from(file.metadata, "options", setting.input_case.options);
  setting = completed(cell.component->spec.signature, setting);
  check_names(file, generate_inputs(cell.component->spec, setting, 0), output_specs(cell.component->spec, setting));
  const auto result = judge_outputs(*cell.component, setting, file.inputs, file.outputs);
  for (const auto& row : result.outputs)
    std::printf("%-24s %-10s max abs %.3g  max rel %.3g  error / allowed %.3g  %s\n", row.name.c_str(),
                row.tolerance_class.c_str(), row.comparison.max_absolute_error, row.comparison.max_relative_error,
                row.comparison.worst_ratio, row.comparison.accepted() ? "pass" : row.comparison.reason.c_str());
  std::cout << name << ": " << name_of(result.verdict) << (result.reason.empty() ? "" : " (" + result.reason + ")")
            << '\n';
  return result.verdict == CheckVerdict::kPass   ? kExitPass
         : result.verdict == CheckVerdict::kSkip ? kExitInconclusive
                                                 : kExitFailure;
}

}  // namespace twinbench
