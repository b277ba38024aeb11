// `twinbench check`: judges the outputs in a file against the oracle on the inputs in the same file.
#include <ATen/ATen.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "harness/command/command.h"
#include "harness/command/tensor_file.h"
#include "harness/compare/inputs.h"
#include "harness/compare/structure.h"
#include "harness/parity/reference.h"
#include "src/common/error.h"
#include "src/formats/json_text.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// Sizes and options as the file's metadata has them.
template <class Map>
void take_from(const std::map<std::string, std::string>& metadata, const std::string& key, Map& into) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return;
  try {
    const nlohmann::json given = parse_json_text(found->second, "metadata", key);
    for (const auto& [name, value] : given.get<std::map<std::string, nlohmann::json>>()) {
      if (!into.count(name)) throw Error(ErrorKind::kUnknownName, "metadata " + key, name, "the case has no such name");
      if (std::is_integral_v<typename Map::mapped_type> && !value.is_number_integer())
        throw Error(ErrorKind::kCorrupt, "metadata " + key + " " + name, value.dump(), "give a whole number");
      if (!value.is_number())  // a choice is its index
        throw Error(ErrorKind::kCorrupt, "metadata " + key + " " + name, value.dump(), "give a number");
      into[name] = value.template get<typename Map::mapped_type>();
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::kCorrupt, "metadata " + key, found->second,
                "it must be a JSON object, as `twinbench dump` writes it");
  }
}

// A file that does not say its sizes has those of its tensors; what no tensor's length tells is the case's.
Setting sized_by_tensors(const Signature& signature, const NamedTensors& inputs, Setting setting) {
  for (const auto& input : signature.inputs) {
    for (const auto& extent : input.shape) setting.input_case.sizes.erase(extent.symbol());
    setting.input_case.sizes.erase(input.per);
  }
  return bound(signature, inputs, setting);
}

// What the file says it is of, where it says so. What is right depends on neither variant nor device.
void check_cell(const std::map<std::string, std::string>& metadata, const Cell& asked) {
  const auto found = metadata.find("cell");
  if (found == metadata.end()) return;
  const Cell of = find_cell(found->second);
  const std::string remedy = "check it as " + found->second + ", or take 'cell' out of its metadata";
  const auto differs = [&](const std::string& what, const std::string& is, const std::string& wanted) {
    if (is != wanted)
      throw Error(ErrorKind::kBadArgument, "metadata cell: " + what, is,
                  "the cell asked for has " + wanted + ": " + remedy);
  };
  differs("component", of.component->spec.id(), asked.component->spec.id());
  differs("dtype", to_string(of.dtype), to_string(asked.dtype));
  differs("case", of.input_case->name, asked.input_case->name);
}

// A seed in the metadata promises the inputs that it gives.
void check_seed(const TensorFile& file, const ComponentSpec& spec, const Setting& setting) {
  const auto found = file.metadata.find("seed");
  if (found == file.metadata.end()) return;
  std::uint64_t seed = 0;
  const auto* const end = found->second.data() + found->second.size();
  if (const auto read = std::from_chars(found->second.data(), end, seed); read.ec != std::errc() || read.ptr != end)
    throw Error(ErrorKind::kCorrupt, "metadata seed", found->second, "give a whole number from 0 to 2^64 - 1");
  for (const auto& [name, tensor] : generated_inputs(spec, setting, seed)) {
    const at::Tensor given = file.inputs[name].contiguous();
    if (given.nbytes() == tensor.nbytes() &&
        (given.nbytes() == 0 ||
         std::memcmp(given.const_data_ptr(), tensor.contiguous().const_data_ptr(), given.nbytes()) == 0))
      continue;
    throw Error(ErrorKind::kCorrupt, "metadata seed", found->second,
                "input." + name +
                    " is not what this seed gives: where the inputs are your own, take 'seed' out of the "
                    "metadata");
  }
}

// Nothing to compare is no pass.
void check_elements(const TensorFile& file) {
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : file.outputs) elements += tensor.numel();
  if (elements == 0)
    throw Error(ErrorKind::kBadFile, "outputs", "no elements",
                "choose sizes that give at least one: nothing is compared");
}

bool all_zero(const at::Tensor& tensor) { return tensor.numel() > 0 && !tensor.ne(0).any().item<bool>(); }

bool says_something(const at::Tensor& tensor) {
  return tensor.numel() > 0 && at::isfinite(tensor).logical_and(tensor.ne(0)).any().item<bool>();
}

// Some output is of floating numbers, and none of them is finite: NaN where NaN belongs is little to go by.
bool no_finite_number(const CheckResult& result, const NamedTensors& right) {
  bool any = false;
  for (const auto& row : result.outputs) {
    const at::Tensor& tensor = right[row.name];
    if (row.tolerance_class == "measured" || !tensor.is_floating_point() || tensor.numel() == 0) continue;
    if (at::isfinite(tensor).any().item<bool>()) return false;
    any = true;
  }
  return any;
}

// The file must hold every input of the signature, of a length of its own where that is what the axis has, and every
// output.
void check_names(const TensorFile& file, const Signature& signature, const Setting& setting,
                 const std::vector<OutputSpec>& outputs) {
  for (const InputSpec& input : inputs_of(signature, setting)) {
    const std::string& name = input.name;
    const at::ScalarType type = scalar_type(input.element, Dtype::kFp32);
    if (!file.inputs.contains(name))
      throw Error(ErrorKind::kBadFile, "tensor input." + name, "missing",
                  "`twinbench dump` writes every input the cell needs");
    const auto& given = file.inputs[name];
    if (given.scalar_type() != type)
      throw Error(ErrorKind::kBadDtype, "tensor input." + name, c10::toString(given.scalar_type()),
                  std::string("give ") + c10::toString(type));
    const std::vector<std::int64_t> expected = extents(input.shape, setting);
    if (!has_extents(given, expected))
      throw Error(ErrorKind::kBadShape, "tensor input." + name, shape_text(given),
                  "the sizes in the metadata make it " + extents_text(expected));
  }
  for (const auto& output : outputs)
    if (!file.outputs.contains(output.name))
      throw Error(ErrorKind::kBadFile, "tensor output." + output.name, "missing", "give every output of the cell");
}

}  // namespace

int check_command(const CommandOptions&, const std::string& name, const std::string& from) {
  const auto cell = find_cell(name);
  const auto file = read_tensor_file(from);
  check_cell(file.metadata, cell);
  Setting setting{*cell.input_case, cell.dtype, Device()};
  setting.input_case.options = cell.setting().input_case.options;
  // A file is judged on the CPU, wherever it was made; by what the cell's own device promises of tf32.
  setting.device = cell.device.takes_cuda_path() ? Device::simt() : Device(c10::DeviceType::CPU);
  take_from(file.metadata, "sizes", setting.input_case.sizes);
  take_from(file.metadata, "options", setting.input_case.options);
  const Signature& signature = cell.component->spec.signature;
  setting =
      file.metadata.count("sizes") ? completed(signature, setting) : sized_by_tensors(signature, file.inputs, setting);
  check_names(file, signature, setting, output_specs(cell.component->spec, setting));
  check_seed(file, cell.component->spec, setting);
  check_elements(file);
  const Reference reference(*cell.component, setting, file.inputs);
  CheckResult result;
  reference.judge(file.outputs, result);
  for (const auto& row : result.outputs)
    if (!row.comparison.negligible && row.tolerance_class != "measured" && all_zero(file.outputs[row.name]) &&
        !all_zero(reference.oracle()[row.name]))
      result.fail("output '" + row.name + "' is all zeros, the right answer is not");
  if (result.verdict == CheckVerdict::kPass && no_finite_number(result, reference.oracle()))
    result.skip("the right answer has no finite floating number: other inputs would tell answers apart");
  // Inputs of one's own can be such that any answer would do: nothing but NaN, nothing but zeros.
  const bool told = std::any_of(result.outputs.begin(), result.outputs.end(), [&](const auto& row) {
    return row.tolerance_class != "measured" && says_something(reference.oracle()[row.name]);
  });
  if (!told && !file.metadata.count("seed") && result.verdict == CheckVerdict::kPass)
    result.skip("the right answer has no finite number but zero: other inputs would tell answers apart");
  const bool all_judged =
      std::all_of(result.outputs.begin(), result.outputs.end(), [](const OutputRow& row) { return row.judged; });
  if (!all_judged && result.verdict == CheckVerdict::kPass)
    result.skip("some outputs were not judged: with another seed, or other inputs, no decision is as close");
  for (const auto& row : result.outputs)
    std::printf("%-24s %-10s max abs %.3g  max rel %.3g  error / allowed %.3g  %s\n", row.name.c_str(),
                row.tolerance_class.c_str(), row.comparison.max_absolute_error, row.comparison.max_relative_error,
                row.comparison.worst_ratio,
                !row.judged                 ? "not judged: close decisions move it far"
                : row.comparison.accepted() ? "pass"
                                            : row.comparison.reason.c_str());
  std::cout << name << ": " << name_of(result.verdict) << (result.reason.empty() ? "" : " (" + result.reason + ")")
            << '\n';
  return result.verdict == CheckVerdict::kPass   ? kExitPass
         : result.verdict == CheckVerdict::kSkip ? kExitInconclusive
                                                 : kExitFailure;
}

}  // namespace twinbench
