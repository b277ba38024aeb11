// Drawing sizes and options by hash, within the signature's ranges, the work and the values of the listed cases.
#include "harness/parity/held_out.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "harness/runner/share.h"
#include "src/common/error.h"
#include "src/common/filter_pattern.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

constexpr std::int64_t kLongestAxis = std::int64_t{1} << 32;
constexpr double kMostForATail = 100'000;  // elements, where all other sizes are least

bool fits(const Case& one, bool timed) {
  return one.timed == timed && !one.degenerate && !one.fixed && one.specimen.empty();
}

// What a case takes: elements of its inputs, floating-point operations of any version, dispatches of the baseline.
struct Work {
  double elements = 0, flops = 0, dispatches = 0;

  bool within(const Work& most) const {
    return elements <= most.elements && flops <= most.flops && dispatches <= most.dispatches;
  }
};

Work work_of(const Component& component, const Case& one) {
  Setting setting;
  setting.input_case = one;
  setting = completed(component.spec.signature, setting);
  Work work;
  work.elements = input_elements(component, setting);
  if (component.spec.cost) work.flops = component.spec.cost(setting).flops;
  work.dispatches = baseline_dispatches(component, setting);
  return work;
}

// Not those of a part that the case is without.
std::set<std::string> sizes_there(const Component& component, const Case& one) {
  std::set<std::string> there;
  for (const auto& size : component.spec.signature.sizes)
    if (const auto given = one.sizes.find(size.name); given != one.sizes.end() && size.is_there(given->second))
      there.insert(size.name);
  return there;
}

std::int64_t largest(const Component& component, const std::string& size, bool timed) {
  std::int64_t most = 1;
  for (const auto& one : component.spec.cases)
    if (const auto given = one.sizes.find(size); fits(one, timed) && given != one.sizes.end())
      most = std::max(most, given->second);
  return most;
}

// Of three digits, so that what is printed is what was drawn.
std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value == std::floor(value) && std::abs(value) < 1e16 ? "%.0f" : "%.3g", value);
  return text;
}

// What an option may be: of switches and choices one of the values that the cases and the default give it, of numbers
// any between two neighbours of these, each two alike: one wild value does not take all draws. One that no case sets
// stays.
double drawn_option(const Component& component, const OptionSpec& option, double draw) {
  const std::set<double> values = listed_values(component, option);
  const std::vector<double> given(values.begin(), values.end());
  if (given.size() == 1) return given.front();
  const double place = draw * static_cast<double>(given.size() - (is_number(option) ? 1 : 0));
  const auto first = static_cast<std::size_t>(place);
  if (!is_number(option)) return given[first];
  const double low = given[first], high = given[first + 1], share = place - static_cast<double>(first);
  if (option.kind == OptionSpec::Kind::kCount) return std::floor(low + share * (high - low + 1));
  constexpr double kOrders = 100;  // so far apart, every order of magnitude alike
  const double value = low > 0 && high / low > kOrders ? low * std::pow(high / low, share) : low + share * (high - low);
  return std::clamp(std::stod(short_text(value)), low, high);
}

}  // namespace

bool is_number(const OptionSpec& option) {
  return option.kind == OptionSpec::Kind::kReal || option.kind == OptionSpec::Kind::kCount;
}

double value_of(const Case& one, const OptionSpec& option) {
  const auto found = one.options.find(option.name);
  return found == one.options.end() ? option.otherwise : found->second;
}

bool is_drawn_from(const Case& one) { return fits(one, false); }

std::set<double> listed_values(const Component& component, const OptionSpec& option) {
  std::set<double> values = {option.otherwise};
  for (const auto& one : component.spec.cases)
    if (is_drawn_from(one)) values.insert(value_of(one, option));
  return values;
}

double unit_draw(const std::string& text) {
  return static_cast<double>(name_hash(text) >> 11) / static_cast<double>(std::uint64_t{1} << 53);
}

std::int64_t between(std::int64_t low, std::int64_t high, double draw) {
  const double from = std::log(static_cast<double>(low)), to = std::log(static_cast<double>(high) + 1);
  return std::clamp(static_cast<std::int64_t>(std::exp(from + draw * (to - from))), low, high);
}

std::string draw_options(const Component& component, const std::string& key, Case& one) {
  std::string text;
  const Signature& signature = component.spec.signature;
  for (const auto& option : signature.options) {
    if ((option.of_inputs && !is_number(option)) || signature.has_parts_with(option.name)) continue;
    if (unit_draw(key + " whether " + option.name) < (option.of_inputs ? 0.75 : 0.25)) continue;
    const double value = drawn_option(component, option, unit_draw(key + " option " + option.name));
    const double before = one.options.emplace(option.name, option.otherwise).first->second;
    if (value == before) continue;
    one.options[option.name] = value;
    text += (text.empty() ? "; options " : ", ") + option.name + " " + short_text(value);
  }
  return text;
}

double baseline_dispatches(const Component& component, const Setting& complete) {
  for (const ProofCounter& counter : component.spec.proof)
    if (counter.counter == "dispatches" && counter.baseline) return static_cast<double>(counter.baseline(complete));
  return 0;
}

double input_elements(const Component& component, const Setting& complete) {
  double elements = 0;
  for (const auto& input : inputs_of(component.spec.signature, complete)) {
    double count = 1;
    for (const auto extent : extents(input.shape, complete))
      count *= static_cast<double>(std::max<std::int64_t>(extent, 1));
    elements += count;
  }
  return elements;
}

HeldOutDraw held_out_draw(const Component& component, const std::string& text, int number, bool timed) {
  const std::string key =
      text + " " + component.spec.id() + " " + (timed ? "timed" : "small") + " " + std::to_string(number);
  std::vector<const Case*> bases;
  Work most;
  for (const auto& one : component.spec.cases)
    if (fits(one, timed)) bases.push_back(&one);
  HeldOutDraw draw;
  if (bases.empty()) return draw;
  const Case& base = *bases[name_hash(key + " base") % bases.size()];
  const std::set<std::string> there = sizes_there(component, base);
  for (const Case* const one : bases) {  // without a part that this one is without, whose work is another
    if (sizes_there(component, *one) != there) continue;
    const Work work = work_of(component, *one);
    most = {std::max(most.elements, work.elements), std::max(most.flops, work.flops),
            std::max(most.dispatches, work.dispatches)};
  }
  draw.input_case = base;
  draw.input_case.name = kHeldOut;
  const std::string options = timed ? "" : draw_options(component, key, draw.input_case);  // the work hangs on them too
  const std::string any_tail =
      there.empty() || timed
          ? ""
          : *std::next(there.begin(), static_cast<std::ptrdiff_t>(name_hash(key + " tail") % there.size()));
  std::map<std::string, std::int64_t> least;
  std::string numbers;
  for (const auto& size : component.spec.signature.sizes) {
    if (!there.count(size.name)) continue;
    const auto given = draw.input_case.sizes.find(size.name);
    const std::int64_t low = std::max(size.least_drawn(), timed ? given->second / 2 : 1);
    std::int64_t high = timed ? given->second * 5 / 4 : 2 * largest(component, size.name, timed);
    if (size.name == any_tail) high = std::max(high, kAnyTail);
    high = std::max(low, std::min(size.high, high));
    const double place = unit_draw(key + " " + size.name);
    if (size.high > kLongestAxis) {  // a plain number, as a seed is: its upper half matters as well
      given->second = between(low, size.high, place);
      numbers += " " + size.name + " " + std::to_string(given->second) + ",";
      continue;
    }
    given->second = size.name == any_tail ? low + static_cast<std::int64_t>(place * static_cast<double>(high - low + 1))
                                          : between(low, high, place);
    least[size.name] = low;
  }
  for (int halved = 0; halved < 64; ++halved) {
    const Work work = work_of(component, draw.input_case);
    if (work.within(most)) break;
    // That one last, for it would lose its tail.
    const auto room = [&](const auto& one) {
      const std::int64_t left = draw.input_case.sizes.at(one.first) - one.second;
      return one.first == any_tail ? std::min<std::int64_t>(left, 1) : 2 * left;
    };
    const auto size =
        std::max_element(least.begin(), least.end(), [&](const auto& a, const auto& b) { return room(a) < room(b); });
    if (size == least.end()) break;
    if (size->first == any_tail && work.elements <= kMostForATail) break;
    auto& value = draw.input_case.sizes.at(size->first);
    value = std::max(size->second, value / 2);
  }
  draw.seed = name_hash(key + " seed") % 1'000'000'000;
  draw.text = "from " + base.name + ":";
  for (const auto& [name, low] : least)
    draw.text += " " + name + " " + std::to_string(draw.input_case.sizes.at(name)) + ",";
  draw.text += numbers + " seed " + std::to_string(draw.seed) + options;
  return draw;
}

HeldOutCells::HeldOutCells(const std::string& filter, const std::string& device, bool timed) {
  const FilterPattern wanted(filter);
  for (const auto& component : components()) {
    const auto& all = component.spec.cases;
    if (std::none_of(all.begin(), all.end(), [&](const Case& one) { return fits(one, timed); })) continue;
    cases_.emplace_back();
    cases_.back().name = kHeldOut;
    cases_.back().timed = timed;
    for (const Device& path : {Device(), Device(c10::DeviceType::CUDA), Device::simt()})
      for (const auto dtype : component.spec.dtypes)
        for (const auto variant : {Variant::kBaseline, Variant::kOptimized, Variant::kLibrary}) {
          const Cell cell{&component, variant, path, dtype, &cases_.back()};
          if (!component.supports(variant, path, dtype) || (device != "all" && device != to_string(path))) continue;
          if (wanted.found_in(cell.name())) cells_.push_back(cell);
        }
  }
}

}  // namespace twinbench
