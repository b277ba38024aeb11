// Binding of sizes by tensors, and the one check of a component's inputs.
#include <algorithm>

#include "src/common/nearest_name.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

[[noreturn]] void wrong_shape(const InputSpec& input, const at::Tensor& tensor, const std::string& expected) {
  throw Error(ErrorKind::kBadShape, input.name, c10::str(tensor.sizes()), "expected " + expected);
}

std::string written(const std::vector<Expression>& shape) {
  std::string text;
  for (const auto& extent : shape) text += (text.empty() ? "[" : ", ") + extent.text();
  return shape.empty() ? "[]" : text + "]";
}

const SizeSpec* find_size(const Signature& signature, const std::string& name) {
  const auto found =
      std::find_if(signature.sizes.begin(), signature.sizes.end(), [&](const auto& s) { return s.name == name; });
  return found == signature.sizes.end() ? nullptr : &*found;
}

bool may_bind(const Signature& signature, const std::string& symbol) {
  if (find_size(signature, symbol)) return true;
  return std::any_of(signature.derived.begin(), signature.derived.end(),
                     [&](const auto& derived) { return derived.name == symbol && derived.free; });
}

// An extent that is one symbol binds it; a second one must agree.
void bind_sizes(const Signature& signature, const InputSpec& input, const at::Tensor& tensor, const Sizes& given,
                Sizes& sizes) {
  if (tensor.dim() != static_cast<std::int64_t>(input.shape.size()))
    wrong_shape(input, tensor, c10::str(input.shape.size(), " dimensions, ", written(input.shape)));
  for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
    const std::string& symbol = input.shape[axis].symbol();
    if (symbol.empty() || !may_bind(signature, symbol)) continue;
    const std::int64_t length = tensor.size(static_cast<std::int64_t>(axis));
    const auto [place, is_new] = sizes.emplace(symbol, length);
    if (!is_new && place->second != length)
      wrong_shape(input, tensor, c10::str(written(input.shape), " with ", symbol, " = ", place->second));
    const auto asked = given.find(symbol);
    if (asked != given.end() && asked->second != length)
      throw Error(ErrorKind::kDimensionMismatch, input.name, c10::str(tensor.sizes()),
                  c10::str("the case says ", symbol, " = ", asked->second));
    const SizeSpec* size = find_size(signature, symbol);
    if (size && (length < size->low || length > size->high))
      throw Error(ErrorKind::kOutOfRange, input.name, c10::str(symbol, " = ", length),
                  c10::str("give ", symbol, " from ", size->low, " to ", size->high));
  }
}

void check_count(const Signature& signature, const std::string& symbol, std::int64_t count) {
  const SizeSpec* size = find_size(signature, symbol);
  if (size && (count < size->low || count > size->high))
    throw Error(ErrorKind::kOutOfRange, symbol, std::to_string(count),
                c10::str("give ", symbol, " from ", size->low, " to ", size->high));
}

void check_tensor(const InputSpec& input, const at::Tensor& tensor, const Setting& setting) {
  const at::ScalarType dtype = scalar_type(input.element, setting.dtype);
  if (tensor.scalar_type() != dtype)
    throw Error(ErrorKind::kBadDtype, input.name, c10::toString(tensor.scalar_type()),
                std::string("give ") + c10::toString(dtype));
  const auto expected = extents(input.shape, setting);
  for (std::size_t axis = 0; axis < expected.size(); ++axis)
    if (expected[axis] >= 0 && tensor.size(static_cast<std::int64_t>(axis)) != expected[axis])
      wrong_shape(input, tensor, c10::str(at::IntArrayRef(expected), ", ", written(input.shape)));
}

}  // namespace

Setting bound(const Signature& signature, const NamedTensors& inputs, Setting setting) {
  if (signature.inputs.empty()) return completed(signature, std::move(setting));
  const Sizes given = setting.input_case.sizes;
  Sizes sizes;
  for (const auto& input : signature.inputs)
    if (input.per.empty()) bind_sizes(signature, input, inputs[input.name], given, sizes);
  for (const auto& [name, length] : sizes) setting.input_case.sizes[name] = length;
  for (const auto& input : signature.inputs)  // a count that no tensor's length tells: as many as there are
    if (!input.per.empty() && !setting.input_case.sizes.count(input.per)) {
      std::int64_t count = 0;
      while (inputs.contains(input.name + "_" + std::to_string(count))) ++count;
      setting.input_case.sizes[input.per] = count;
    }
  for (const auto& input : signature.inputs)  // before a list is made of so many
    if (!input.per.empty()) check_count(signature, input.per, setting.size(input.per));
  for (const auto& input : inputs_of(signature, setting)) {
    bind_sizes(signature, input, inputs[input.name], given, sizes);
    for (const auto& [name, length] : sizes) setting.input_case.sizes[name] = length;
  }
  setting = completed(signature, std::move(setting));
  const auto all = inputs_of(signature, setting);
  std::vector<std::string> names;
  for (const auto& input : all) {
    check_tensor(input, inputs[input.name], setting);
    names.push_back(input.name);
  }
  for (const auto& [name, tensor] : inputs)
    if (std::find(names.begin(), names.end(), name) == names.end() && name.rfind("grad_", 0) != 0)
      throw Error(ErrorKind::kUnknownName, "input", name,
                  "the component has no such input" + did_you_mean(name, names));
  return setting;
}

}  // namespace twinbench
