// The short words that signatures are written in.
#include "src/signature.h"

#include <algorithm>

#include "src/common/error.h"

namespace twinbench {

OptionSpec switch_option(std::string name, bool otherwise, std::string meaning) {
  return {std::move(name), OptionSpec::Kind::kSwitch, otherwise ? 1.0 : 0.0, 0, 1, std::move(meaning)};
}
OptionSpec count_option(std::string name, std::int64_t otherwise, double low, double high, std::string meaning) {
  return {std::move(name), OptionSpec::Kind::kCount, static_cast<double>(otherwise), low, high, std::move(meaning)};
}
OptionSpec real_option(std::string name, double otherwise, double low, double high, std::string meaning) {
  return {std::move(name), OptionSpec::Kind::kReal, otherwise, low, high, std::move(meaning)};
}
OptionSpec choice_option(std::string name, std::vector<std::string> choices, std::string otherwise,
                         std::string meaning) {
  const auto found = std::find(choices.begin(), choices.end(), otherwise);
  if (found == choices.end())
    throw Error(ErrorKind::kUnknownName, "option " + name, otherwise, "the default must be one of its choices");
  const double highest = static_cast<double>(choices.size()) - 1;
  return {std::move(name),    OptionSpec::Kind::kChoice, static_cast<double>(found - choices.begin()), 0, highest,
          std::move(meaning), std::move(choices)};
}
OptionSpec of_inputs(OptionSpec option) {
  option.of_inputs = true;
  return option;
}

namespace {

Draw draw_of(Draw::Kind kind, std::uint32_t number, double spread = 1) {
  Draw draw;
  draw.kind = kind;
  draw.number = number;
  draw.spread = spread;
  return draw;
}

}  // namespace

Draw from_case(std::uint32_t number, double spread, std::string divided_by_root_of) {
  Draw draw = draw_of(Draw::Kind::kCase, number, spread);
  draw.fan = std::move(divided_by_root_of);
  return draw;
}
Draw always(std::string distribution, std::uint32_t number, double spread) {
  Draw draw = draw_of(Draw::Kind::kCase, number, spread);
  draw.distribution = std::move(distribution);
  return draw;
}
Draw normal(std::uint32_t number, double standard_deviation) {
  return draw_of(Draw::Kind::kNormal, number, standard_deviation);
}
Draw uniform(std::uint32_t number, double low, double high) {
  Draw draw = draw_of(Draw::Kind::kUniform, number);
  draw.low = low;
  draw.high = high;
  return draw;
}
Draw fan_in(std::uint32_t number, std::string fan) {
  Draw draw = draw_of(Draw::Kind::kFanIn, number);
  draw.fan = std::move(fan);
  return draw;
}
Draw xavier(std::uint32_t number, double gain) { return draw_of(Draw::Kind::kXavier, number, gain); }
Draw kaiming(std::uint32_t number) { return draw_of(Draw::Kind::kKaiming, number); }
Draw not_drawn() { return {}; }

std::vector<Expression> shape_of(const std::string& text) {
  std::vector<Expression> shape;
  int depth = 0;
  std::string part;
  for (const char c : text + ",") {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != ',' || depth > 0) {
      if (c != ' ' || !part.empty()) part += c;
      continue;
    }
    if (!part.empty() || !shape.empty()) shape.emplace_back(part);
    part.clear();
  }
  return shape;
}

InputSpec InputSpec::batch(std::optional<std::int64_t> axis) const {
  InputSpec copy = *this;
  copy.batch_axis = axis;
  return copy;
}
InputSpec InputSpec::without_gradient() const {
  InputSpec copy = *this;
  copy.differentiable = false;
  return copy;
}
InputSpec InputSpec::shifted(double by) const {
  InputSpec copy = *this;
  copy.shift = by;
  return copy;
}
InputSpec InputSpec::clamped(double low, double high) const {
  InputSpec copy = *this;
  copy.limits = {low, high};
  return copy;
}
InputSpec InputSpec::one_per(std::string size, std::uint32_t step) const {
  InputSpec copy = *this;
  copy.per = std::move(size);
  copy.number_step = step;
  return copy;
}
InputSpec InputSpec::of(Element what) const {
  InputSpec copy = *this;
  copy.element = what;
  if (what >= Element::kInt64) copy.differentiable = false;
  return copy;
}

namespace {

InputSpec input(std::string name, const std::string& shape, Draw draw, Role role) {
  InputSpec spec;
  spec.name = std::move(name);
  spec.shape = shape_of(shape);
  spec.draw = std::move(draw);
  spec.role = role;
  return spec;
}

}  // namespace

InputSpec data(std::string name, const std::string& shape, Draw draw) {
  return input(std::move(name), shape, std::move(draw), Role::kData).batch(0);
}
InputSpec keys(std::string name, const std::string& shape) {
  return data(std::move(name), shape, not_drawn()).of(Element::kInt64);
}
InputSpec weight(std::string name, const std::string& shape, Draw draw) {
  return input(std::move(name), shape, std::move(draw), Role::kWeight);
}
InputSpec bias(std::string name, const std::string& shape, Draw draw) {
  return input(std::move(name), shape, std::move(draw), Role::kBias);
}
InputSpec gain(std::string name, const std::string& shape, Draw draw) {
  return input(std::move(name), shape, std::move(draw), Role::kGain);
}
InputSpec state(std::string name, const std::string& shape, Draw draw) {
  return input(std::move(name), shape, std::move(draw), Role::kState).without_gradient();
}

OutputSpec OutputSpec::batch(std::optional<std::int64_t> axis) const {
  OutputSpec copy = *this;
  copy.batch_axis = axis;
  return copy;
}
OutputSpec OutputSpec::with_nan() const {
  OutputSpec copy = *this;
  copy.nan_allowed = true;
  return copy;
}
OutputSpec OutputSpec::of(Element what) const {
  OutputSpec copy = *this;
  copy.element = what;
  return copy;
}
OutputSpec OutputSpec::with_gradient(std::uint32_t number, double spread) const {
  OutputSpec copy = *this;
  copy.gradient = always("normal", number, spread);
  return copy;
}
OutputSpec OutputSpec::advanced() const {
  OutputSpec copy = *this;
  copy.advancing = true;
  return copy;
}

OutputSpec output(std::string name, const std::string& shape, Tolerance tolerance) {
  OutputSpec spec{std::move(name), std::move(tolerance), 0};
  spec.shape = shape_of(shape);
  return spec;
}
OutputSpec exact_output(std::string name, const std::string& shape, Element element) {
  return output(std::move(name), shape, {Tolerance::Kind::kExact, {}, {}, "exact"}).of(element);
}

const OptionSpec* Signature::find_option(const std::string& name) const {
  const auto found = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.name == name; });
  return found == options.end() ? nullptr : &*found;
}

bool Signature::has_size(const std::string& name) const {
  const auto named = [&](const auto& size) { return size.name == name; };
  return std::any_of(sizes.begin(), sizes.end(), named) || std::any_of(derived.begin(), derived.end(), named);
}

bool Signature::has_parts_with(const std::string& option) const {
  return std::any_of(sizes.begin(), sizes.end(), [&](const SizeSpec& one) { return one.part_of == option; });
}

bool Signature::has_state() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const InputSpec& input) { return input.role == Role::kState; });
}

std::string to_string(Role role) {
  constexpr const char* names[] = {"data", "weight", "bias", "gain", "state"};
  return names[static_cast<int>(role)];
}
std::string to_string(Element element) {
  constexpr const char* names[] = {"floating", "complex", "planar", "double", "int64", "int32", "byte", "bool"};
  return names[static_cast<int>(element)];
}

}  // namespace twinbench
