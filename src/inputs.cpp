// Expansion of per-layer groups, defaults, and generation of inputs from a signature.
#include "src/inputs.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_complex.h>

#include <algorithm>
#include <cmath>

#include "src/common/nearest_name.h"
#include "src/common/number_text.h"
#include "src/draws.h"

namespace twinbench {
namespace {

// `layer` stands for one number in the expressions of an expanded tensor.
std::vector<Expression> at_layer(const std::vector<Expression>& shape, std::int64_t layer) {
  std::vector<Expression> fixed;
  for (const auto& extent : shape) fixed.push_back(extent.with("layer", layer));
  return fixed;
}

// Neighbours that are one per the same size alternate.
template <class Spec, class Expand>
std::vector<Spec> expanded(const std::vector<Spec>& list, const Setting& setting, Expand expand) {
  std::vector<Spec> all;
  for (std::size_t i = 0; i < list.size();) {
    if (list[i].per.empty()) {
      all.push_back(list[i++]);
      continue;
    }
    std::size_t end = i;
    while (end < list.size() && list[end].per == list[i].per) ++end;
    for (std::int64_t layer = 0; layer < setting.size(list[i].per); ++layer)
      for (std::size_t k = i; k < end; ++k) {
        Spec one = list[k];
        one.name += "_" + std::to_string(layer);
        one.shape = at_layer(one.shape, layer);
        one.per.clear();
        expand(one, layer);
        all.push_back(std::move(one));
      }
    i = end;
  }
  return all;
}

std::vector<InputSpec> forward_inputs(const Signature& signature, const Setting& setting) {
  return expanded(signature.inputs, setting, [](InputSpec& one, std::int64_t layer) {
    one.draw.number += one.number_step * static_cast<std::uint32_t>(layer);
  });
}

at::Tensor values_of(const InputSpec& input, at::IntArrayRef shape, const Setting& setting, std::uint64_t seed) {
  const Draw& draw = input.draw;
  switch (draw.kind) {
    case Draw::Kind::kNone: return at::empty(shape, scalar_type(input.element, Dtype::kFp32)).zero_();
    case Draw::Kind::kCase: {
      const double root = draw.fan.empty() ? 1.0 : std::sqrt(static_cast<double>(setting.size(draw.fan)));
      const std::string& distribution = draw.distribution.empty() ? setting.input_case.distribution : draw.distribution;
      return draws::drawn(distribution, shape, seed, draw.number, draw.fan.empty() ? draw.spread : draw.spread / root);
    }
    case Draw::Kind::kNormal: return draws::normal(shape, seed, draw.number, draw.spread);
    case Draw::Kind::kUniform: return draws::uniform(shape, seed, draw.number, draw.low, draw.high);
    case Draw::Kind::kFanIn: return draws::fan_in_uniform(shape, setting.size(draw.fan), seed, draw.number);
    case Draw::Kind::kXavier: return draws::xavier_uniform(shape[0], shape[1], seed, draw.number, draw.spread);
    case Draw::Kind::kKaiming:
      return draws::normal(shape, seed, draw.number, std::sqrt(2.0 / static_cast<double>(shape[0])));
  }
  throw Error(ErrorKind::kInternal, "draw", input.name, "a kind of draw that generation does not know");
}

at::Tensor generated(const InputSpec& input, const Setting& setting, std::uint64_t seed) {
  std::vector<std::int64_t> shape = extents(input.shape, setting);
  for (auto& extent : shape) extent = std::max<std::int64_t>(extent, 0);  // "any": finish_inputs sets such a tensor
  const bool complex = input.element == Element::kComplex && input.draw.kind != Draw::Kind::kNone;
  if (complex) shape.push_back(2);  // real and imaginary part, one after the other
  at::Tensor values = values_of(input, shape, setting, seed);
  if (input.element == Element::kDouble) values = values.to(at::kDouble);
  if (input.shift != 0) values.add_(input.shift);
  if (input.limits) values.clamp_(input.limits->first, input.limits->second);
  return complex ? at::view_as_complex(values).contiguous() : values;
}

}  // namespace

Setting completed(const Signature& signature, Setting setting) {
  auto& options = setting.input_case.options;
  std::vector<std::string> known;
  for (const auto& option : signature.options) known.push_back(option.name);
  for (const auto& [name, value] : options) {
    const OptionSpec* option = signature.find_option(name);
    if (!option)
      throw Error(ErrorKind::kUnknownName, "option", name,
                  "the component has no such option" + did_you_mean(name, known));
    const bool whole = option->kind == OptionSpec::Kind::kReal || value == std::floor(value);
    if (!(value >= option->low && value <= option->high) || !whole)
      throw Error(ErrorKind::kOutOfRange, name, number_text(value),
                  std::string("give ") + (whole ? "" : "a whole number ") + "from " + number_text(option->low) +
                      " to " + number_text(option->high) + ": " + option->meaning);
  }
  for (const auto& option : signature.options) options.emplace(option.name, option.otherwise);
  for (const auto& size : signature.sizes) {
    const auto given = setting.input_case.sizes.find(size.name);
    if (given != setting.input_case.sizes.end() && (given->second < size.low || given->second > size.high))
      throw Error(ErrorKind::kOutOfRange, size.name, std::to_string(given->second),
                  c10::str("give ", size.name, " from ", size.low, " to ", size.high));
    if (given != setting.input_case.sizes.end() && !size.part_of.empty() && options.at(size.part_of) != 0 &&
        given->second < size.least)
      throw Error(ErrorKind::kOutOfRange, size.name, std::to_string(given->second),
                  c10::str("with ", size.part_of, " give ", size.name, " from ", size.least, " to ", size.high));
  }
  setting.signature = &signature;
  for (const auto& derived : signature.derived) {
    if (derived.free && setting.input_case.sizes.count(derived.name)) continue;
    const auto symbols = derived.value.symbols();
    const auto& sizes = setting.input_case.sizes;
    const bool computable = std::all_of(symbols.begin(), symbols.end(), [&](const auto& s) { return sizes.count(s); });
    if (!computable) continue;  // tensors bind what it needs, or nobody asks for it
    const std::int64_t value = derived.value.evaluate([&](const std::string& name) { return sizes.at(name); });
    setting.input_case.sizes[derived.name] = value;
  }
  return setting;
}

std::vector<InputSpec> inputs_of(const Signature& signature, const Setting& setting) {
  auto all = forward_inputs(signature, setting);
  if (!setting.backward()) return all;
  for (const auto& output : signature.outputs) {
    if (!output.gradient) continue;
    InputSpec gradient;
    gradient.name = "grad_" + output.name;
    gradient.shape = output.shape;
    gradient.draw = *output.gradient;
    gradient.element = output.element;
    gradient.batch_axis = output.batch_axis;
    gradient.differentiable = false;
    all.push_back(std::move(gradient));
  }
  return all;
}

std::vector<OutputSpec> outputs_of(const Signature& signature, const Setting& setting) {
  if (!setting.backward()) return expanded(signature.outputs, setting, [](OutputSpec&, std::int64_t) {});
  std::vector<OutputSpec> gradients;
  // Where an output may hold NaN the way back multiplies with it.
  const bool nan_allowed = std::any_of(signature.outputs.begin(), signature.outputs.end(),
                                       [](const OutputSpec& output) { return output.nan_allowed; });
  for (const auto& input : forward_inputs(signature, setting)) {
    if (!input.differentiable) continue;
    OutputSpec gradient{"grad_" + input.name, signature.gradient, input.batch_axis};
    gradient.shape = input.shape;
    gradient.element = input.element;
    gradient.nan_allowed = nan_allowed;
    gradients.push_back(std::move(gradient));
  }
  for (const auto& output : signature.outputs) {
    const bool counted = output.element == Element::kInt32 || output.element == Element::kInt64;
    if (output.tolerance.kind == Tolerance::Kind::kMeasured && counted) gradients.push_back(output);
  }
  return gradients;
}

std::vector<std::int64_t> extents(const std::vector<Expression>& shape, const Setting& setting) {
  std::vector<std::int64_t> lengths;
  for (const auto& extent : shape)
    lengths.push_back(extent.is_any() ? -1
                                      : extent.evaluate([&](const std::string& name) { return setting.size(name); }));
  return lengths;
}

at::ScalarType scalar_type(Element element, Dtype dtype) {
  switch (element) {
    case Element::kFloating:
    case Element::kPlanar: return floating_type(dtype);
    case Element::kComplex: return dtype == Dtype::kFp64 ? at::kComplexDouble : at::kComplexFloat;
    case Element::kDouble: return at::kDouble;
    case Element::kInt64: return at::kLong;
    case Element::kInt32: return at::kInt;
    case Element::kByte: return at::kByte;
    case Element::kBool: return at::kBool;
  }
  return at::kFloat;
}

NamedTensors generate_inputs(const ComponentSpec& spec, const Setting& setting, std::uint64_t seed) {
  const Setting complete = completed(spec.signature, setting);
  NamedTensors inputs;
  for (const auto& input : inputs_of(spec.signature, complete))
    inputs.set(input.name, generated(input, complete, seed));
  if (spec.finish_inputs) spec.finish_inputs(inputs, complete, seed);
  return inputs;
}

}  // namespace twinbench
