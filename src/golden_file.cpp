// Reading of worked examples.
#include "src/golden_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/common/nearest_name.h"
#include "src/draws.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

using nlohmann::json;

double number_of(const json& value, const std::string& entry) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf" || text == "-inf") return std::numeric_limits<double>::infinity() * (text[0] == '-' ? -1 : 1);
  throw Error(ErrorKind::kBadFile, entry, text, "give a number, \"nan\", \"inf\" or \"-inf\"");
}

void flatten(const json& value, const std::string& entry, std::vector<double>& numbers) {
  if (!value.is_array()) return numbers.push_back(number_of(value, entry));
  for (const auto& part : value) flatten(part, entry, numbers);
}

std::vector<std::int64_t> lengths_of(const json& value) {
  std::vector<std::int64_t> lengths;
  for (const json* at = &value; at->is_array(); at = &at->front()) {
    lengths.push_back(static_cast<std::int64_t>(at->size()));
    if (at->empty()) break;
  }
  return lengths;
}

// What the golden says, and what is common where it says nothing: tensor by tensor, null for one it does not have.
json merged(json common, const json& golden) {
  for (const auto& [key, value] : golden.items()) {
    if (!value.is_object() || !common.contains(key) || key == "otherwise") {
      common[key] = value;
      continue;
    }
    for (const auto& [name, tensor] : value.items()) common[key][name] = tensor;
    for (const auto& [name, tensor] : value.items())
      if (tensor.is_null()) common[key].erase(name);
  }
  return common;
}

class GoldenReader {
 public:
  GoldenReader(const ComponentSpec& spec, json entry) : spec_(spec), entry_(std::move(entry)) {
    golden_.name = entry_.value("name", "");
    golden_.absolute = entry_.value("absolute", golden_.absolute);
    if (golden_.name.empty())
      throw Error(ErrorKind::kBadFile, file(), entry_.dump().substr(0, 60), "give each golden a name");
    for (const auto& [key, value] : entry_.items())
      if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
        throw Error(ErrorKind::kUnknownName, at(key), key, "no such key" + did_you_mean(key, kKeys));
  }

  Golden read() {
    Case& one = golden_.setting.input_case;
    one.name = golden_.name;
    one.distribution = "normal";
    const json sizes = part("sizes"), options = part("options");
    for (const auto& [name, value] : sizes.items()) one.sizes[name] = value.get<std::int64_t>();
    for (const auto& [name, value] : options.items()) one.options[name] = number_of(value, at(name));
    if (entry_.value("pass", "forward") == "backward") one.pass = Pass::kBackward;
    golden_.setting = completed(spec_.signature, golden_.setting);
    read_inputs();
    const json expected = part("expected");
    for (const auto& output : outputs_of(spec_.signature, golden_.setting))
      if (expected.contains(output.name)) expect(output, expected[output.name]);
    if (golden_.expected.size() != expected.size() || golden_.expected.empty())
      throw Error(ErrorKind::kBadFile, at("expected"), expected.dump().substr(0, 60), "name outputs of the component");
    return golden_;
  }

 private:
  // A whole tensor, or {"entries": [[row, column, value], ...]}.
  void expect(const OutputSpec& output, const json& value) {
    if (!value.is_object() || !value.contains("entries"))
      return golden_.expected.set(output.name, tensor(output, value));
    const auto shape = extents(output.shape, golden_.setting);
    const at::Tensor values = at::zeros(shape, scalar_type(output.element, Dtype::kFp32)),
                     said = at::zeros(shape, at::kBool);
    for (const auto& entry : value["entries"]) {
      std::vector<double> numbers;
      flatten(entry, at(output.name), numbers);
      at::Tensor place = values, given = said;
      if (numbers.size() != shape.size() + 1)
        throw Error(ErrorKind::kBadShape, at(output.name), entry.dump(), "give an index for each axis, then the value");
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const auto index = static_cast<std::int64_t>(numbers[axis]);
        if (index < 0 || index >= shape[axis])
          throw Error(ErrorKind::kOutOfRange, at(output.name), entry.dump(), "the tensor has no such element");
        place = place.select(0, index), given = given.select(0, index);
      }
      place.fill_(numbers.back()), given.fill_(true);
    }
    golden_.expected.set(output.name, values);
    golden_.said.set(output.name, said);
  }

  static inline const std::vector<std::string> kKeys = {"name",   "note",     "sizes",    "options",  "pass",
                                                        "inputs", "expected", "absolute", "otherwise"};

  std::string file() const { return "src/" + spec_.pipeline + "/" + spec_.name + "/goldens.json"; }
  std::string at(const std::string& key) const { return file() + ": " + golden_.name + ": " + key; }
  json part(const std::string& key) const { return entry_.value(key, json::object()); }

  void read_inputs() {
    const json given = part("inputs");
    std::size_t used = 0;
    for (const auto& input : inputs_of(spec_.signature, golden_.setting)) {
      used += given.contains(input.name);
      if (!given.contains(input.name) && !entry_.contains("otherwise"))
        throw Error(ErrorKind::kBadFile, at(input.name), "missing",
                    "list every input, or say what they are \"otherwise\"");
      golden_.inputs.set(input.name,
                         tensor(input, given.contains(input.name) ? given[input.name] : entry_["otherwise"]));
    }
    if (used != given.size()) {
      for (const auto& [name, value] : given.items())
        if (!golden_.inputs.contains(name)) throw Error(ErrorKind::kUnknownName, at("inputs"), name, "no such input");
    }
  }

  template <class Spec>
  at::Tensor tensor(const Spec& spec, const json& value) const {
    const auto dtype = scalar_type(spec.element, Dtype::kFp32);
    auto shape = extents(spec.shape, golden_.setting);
    if (value.is_object()) return by_rule(spec.name, value, shape, dtype);
    std::vector<double> numbers;
    flatten(value, at(spec.name), numbers);
    const auto lengths = lengths_of(value);
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] < 0 && axis < lengths.size()) shape[axis] = lengths[axis];
    // Complex numbers are pairs; fp64 carries every dtype's values exactly.
    const bool complex = spec.element == Element::kComplex;
    at::Tensor flat = at::empty({static_cast<std::int64_t>(numbers.size())}, at::kDouble);
    std::copy(numbers.begin(), numbers.end(), flat.mutable_data_ptr<double>());
    if (complex && numbers.size() % 2 == 0) flat = at::view_as_complex(flat.reshape({-1, 2}));
    const std::int64_t count = c10::multiply_integers(shape);
    if (flat.numel() != count)
      throw Error(ErrorKind::kBadShape, at(spec.name), std::to_string(flat.numel()) + " values",
                  c10::str("expected ", at::IntArrayRef(shape), ", ", count, " values"));
    return flat.reshape(shape).to(dtype);
  }

  at::Tensor by_rule(const std::string& name, const json& rule, const std::vector<std::int64_t>& shape,
                     at::ScalarType dtype) const {
    if (rule.contains("toy")) {
      const auto k = rule["toy"].get<std::int64_t>();
      return shape.size() == 2 ? draws::toy_weight(shape[0], shape[1], k) : draws::toy_bias(shape[0], k);
    }
    if (rule.contains("fill")) return at::full(shape, number_of(rule["fill"], at(name)), dtype);
    if (rule.contains("drawn"))
      return generate_inputs(spec_, golden_.setting, rule["drawn"].get<std::uint64_t>())[name];
    throw Error(ErrorKind::kBadFile, at(name), rule.dump(), "the rules are toy, fill and drawn");
  }

  const ComponentSpec& spec_;
  const json entry_;
  Golden golden_;
};

}  // namespace

std::vector<Golden> parse_goldens(const ComponentSpec& spec, const std::string& text) {
  const std::string file = "src/" + spec.pipeline + "/" + spec.name + "/goldens.json";
  try {
    const json document = json::parse(text);
    std::vector<Golden> goldens;
    for (const auto& one : document.at("goldens")) {
      goldens.push_back(GoldenReader(spec, merged(document.value("common", json::object()), one)).read());
    }
    return goldens;
  } catch (const json::exception& error) {
    throw Error(ErrorKind::kBadFile, file, "not what goldens.json holds", error.what());
  }
}

bool has_worked_examples(const ComponentSpec& spec) { return !spec.goldens.empty() || *golden_text(spec.id()); }

std::vector<Golden> worked_examples(const ComponentSpec& spec) {
  std::vector<Golden> all;
  for (const auto& make : spec.goldens) all.push_back(make());
  if (const std::string text = golden_text(spec.id()); !text.empty())
    for (auto& golden : parse_goldens(spec, text)) all.push_back(std::move(golden));
  return all;
}

}  // namespace twinbench
