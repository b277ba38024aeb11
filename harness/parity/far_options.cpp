// Choosing bases and values.
#include "harness/parity/far_options.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "harness/parity/held_out.h"
#include "harness/runner/share.h"
#include "src/common/error.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

constexpr double kMostElements = 300'000, kMostFlops = 3e7, kMostOperators = 10'000;

bool may_change(const Case& one) { return !one.timed && !one.degenerate && !one.fixed && one.specimen.empty(); }

std::map<Pass, std::vector<const Case*>> cases_by_pass(const Component& component) {
  std::map<Pass, std::vector<const Case*>> passes;
  for (const Case& one : component.spec.cases)
    if (may_change(one)) passes[one.pass].push_back(&one);
  return passes;
}

// What a gradient of padding is in a row that is NaN nobody says: LibTorch's own attentions differ.
bool go_together(const Component& component, const std::string& one, const std::string& other) {
  const std::set<std::string> both = {one, other};
  return component.spec.name != "fused_attention" || both != std::set<std::string>{"nan_query", "padding"};
}

bool is_number(const OptionSpec& option) {
  return option.kind == OptionSpec::Kind::kReal || option.kind == OptionSpec::Kind::kCount;
}

double value_of(const Case& one, const OptionSpec& option) {
  const auto found = one.options.find(option.name);
  return found == one.options.end() ? option.otherwise : found->second;
}

// What the cases and the default give it.
std::set<double> listed(const Component& component, const OptionSpec& option) {
  std::set<double> values = {option.otherwise};
  for (const Case& one : component.spec.cases)
    if (may_change(one)) values.insert(value_of(one, option));
  return values;
}

const Case& tiny_of(const std::vector<const Case*>& cases) {
  const auto is_tiny = [](const Case* one) { return one->name == "tiny" || one->name == "backward_tiny"; };
  const auto tiny = std::ranges::find_if(cases, is_tiny);
  return tiny == cases.end() ? *cases.front() : **tiny;
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

FarSetting setting_with(const Component& component, const Case& base, const Options& options, Device device,
                        const std::string& sample) {
  Case one = base;
  std::string said = "; options";
  for (const auto& [name, value] : options) {
    one.options[name] = value;
    said += " " + name + " " + text_of(value);
  }
  std::vector<Dtype> dtypes;
  for (const Dtype dtype : component.spec.dtypes)
    if (component.supports(Variant::kOptimized, device, dtype)) dtypes.push_back(dtype);
  const Dtype dtype = dtypes[name_hash(sample + component.spec.id() + base.name + said) % dtypes.size()];
  return {&component, std::make_shared<const Case>(std::move(one)), "; " + to_string(dtype) + said, {}, dtype};
}

// Or what the signature refuses, beside what else the case has.
bool is_too_much(const FarSetting& far) {
  try {
    const Setting setting = far.setting();
    return baseline_dispatches(*far.component, setting) > kMostOperators ||
           input_elements(*far.component, setting) > kMostElements ||
           (far.component->spec.cost && far.component->spec.cost(setting).flops > kMostFlops);
  } catch (const Error&) {
    return true;
  }
}

// From `near`, which is listed, towards `far`: every order of magnitude alike where there are many.
double beyond(double near, double far, double draw, bool whole) {
  double value = near * std::pow(far / near, draw);
  if (near * far <= 0) {
    const double distance = std::abs(far - near), least = std::min(distance, std::max(std::abs(near), 1e-3));
    const double step = least * std::pow(distance / least, draw);
    value = far > near ? near + step : near - step;
  }
  return std::clamp(whole ? std::round(value) : value, std::min(near, far), std::max(near, far));
}

}  // namespace

std::vector<double> values_beyond(const Component& component, const OptionSpec& option, const std::string& key) {
  const std::set<double> known = listed(component, option);
  std::vector<double> values;
  for (const auto& [near, far] : {std::pair{*known.rbegin(), option.high}, {*known.begin(), option.low}}) {
    if (far == near) continue;
    values.push_back(far);
    values.push_back(beyond(near, far, unit_draw(key + text_of(far)), option.kind == OptionSpec::Kind::kCount));
  }
  return values;
}

std::vector<FarSetting> options_at_their_ends(const std::vector<const Component*>& components, Device device,
                                              const std::string& sample) {
  std::vector<FarSetting> all;
  for (const Component* const component : components)
    for (const auto& [pass, cases] : cases_by_pass(*component))
      for (const OptionSpec& option : component->spec.signature.options) {
        if (!is_number(option) || component->spec.signature.has_parts_with(option.name)) continue;
        const std::string key = sample + component->spec.id() + to_string(pass) + option.name;
        std::vector<const Case*> setting_it;
        for (const Case* const one : cases)
          if (value_of(*one, option) != option.otherwise) setting_it.push_back(one);
        std::set<const Case*> bases = {&tiny_of(cases)};
        if (!setting_it.empty()) bases.insert(setting_it[name_hash(key + " base") % setting_it.size()]);
        for (const char* const more : {" more", " and more"}) bases.insert(cases[name_hash(key + more) % cases.size()]);
        for (const Case* const base : bases)
          for (const double value : values_beyond(*component, option, key + base->name)) {
            FarSetting far = setting_with(*component, *base, {{option.name, value}}, device, sample);
            const double near = value_of(*base, option);
            double reached = value;
            while (is_too_much(far) && std::abs(reached - near) >= 2) {
              reached = std::round(near + (reached - near) / 4);
              far = setting_with(*component, *base, {{option.name, reached}}, device, sample);
            }
            far.may_be_unstable = true;
            if (reached != near && !is_too_much(far)) all.push_back(std::move(far));
          }
      }
  return all;
}

std::vector<FarSetting> options_in_pairs(const std::vector<const Component*>& components, Device device,
                                         const std::string& sample) {
  std::vector<FarSetting> all;
  for (const Component* const component : components)
    for (const auto& [pass, cases] : cases_by_pass(*component))
      for (const OptionSpec& one : component->spec.signature.options)
        for (const OptionSpec& other : component->spec.signature.options) {
          if (&one == &other || component->spec.signature.has_parts_with(one.name)) continue;
          if (!go_together(*component, one.name, other.name)) continue;
          const std::string key = sample + component->spec.id() + to_string(pass) + one.name + " with " + other.name;
          std::set<double> values = listed(*component, one);
          values.erase(one.otherwise);
          std::vector<const Case*> bases;
          for (const Case* const base : cases)
            if (value_of(*base, other) != other.otherwise && value_of(*base, one) == one.otherwise)
              bases.push_back(base);
          if (values.empty() || bases.empty()) continue;
          const double value = *std::next(values.begin(), static_cast<std::ptrdiff_t>(name_hash(key) % values.size()));
          const Case& base = *bases[name_hash(key + " base") % bases.size()];
          FarSetting far = setting_with(*component, base, {{one.name, value}}, device, sample);
          if (!is_too_much(far)) all.push_back(std::move(far));
        }
  return all;
}

}  // namespace twinbench
