// Choosing bases, and growing their sizes within what a test may take.
#include "harness/parity/beyond/far_sizes.h"

#include <algorithm>
#include <cstdio>

#include "harness/compare/inputs.h"
#include "harness/counters/counter_scope.h"
#include "harness/parity/beyond/far_options.h"
#include "harness/parity/held_out.h"
#include "harness/parity/reference.h"
#include "harness/runner/share.h"
#include "src/common/error.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

constexpr double kMostFlops = 3e7;
// Of sizes that go far together: from where they shrink, and what each stays beyond. Drawn ones also go some hundreds
// beside some dozens.
struct Together {
  std::int64_t beyond, least, most;
};
constexpr Together kAlike = {100, 130, 300}, kAnyhow = {32, 40, 3'000};

// Costs that are no operators of a run: set-up inverts a dense matrix of so many nodes squared; every saved entry is
// looked for among all, or every byte damaged; the tapes of windows are held; processes start.
std::int64_t farthest_of(const Component& component, const std::string& size) {
  const std::string& name = component.spec.name;
  if (name == "cayley" && size == "dim") return 1'000;
  if (name == "checkpoint" || name == "memory_lifetime" || name == "data_parallel") return 300;
  return 100'003;
}

bool may_grow(const Case& one) { return !one.timed && !one.degenerate && one.specimen.empty(); }

bool is_there(const SizeSpec& size, const Case& one) {
  return one.sizes.count(size.name) && size.is_there(one.sizes.at(size.name));
}

const SizeSpec& size_of(const Component& component, const std::string& name) {
  const auto& sizes = component.spec.signature.sizes;
  return *std::find_if(sizes.begin(), sizes.end(), [&](const SizeSpec& one) { return one.name == name; });
}

// Half of them as they are, the others next to a multiple of 32 to 256, as blocks are long: what is left over is one.
std::int64_t beside_a_block(std::int64_t value, std::int64_t beyond, double draw) {
  if (draw < 0.5) return value;
  const auto which = static_cast<std::int64_t>((draw - 0.5) * 16);  // 0 to 7
  const std::int64_t block = std::int64_t{32} << (which / 2),
                     beside = value / block * block + (which % 2 == 0 ? 1 : -1);
  return beside > beyond && beside <= value ? beside : value;
}

double elements_of(const Component& component, const Case& one) {
  return input_elements(component, completed(component.spec.signature, {one, Dtype::kFp32}));
}

// Those of one pass that may grow, from few elements to many.
std::vector<std::vector<const Case*>> growing_cases(const Component& component) {
  std::map<Pass, std::vector<const Case*>> passes;
  for (const Case& one : component.spec.cases)
    if (may_grow(one)) passes[one.pass].push_back(&one);
  std::vector<std::vector<const Case*>> all;
  for (auto& [pass, cases] : passes) {
    std::stable_sort(cases.begin(), cases.end(), [&](const Case* a, const Case* b) {
      return elements_of(component, *a) < elements_of(component, *b);
    });
    all.push_back(std::move(cases));
  }
  return all;
}

// Each so many of the names, in their order.
std::vector<std::vector<std::string>> subsets(const std::vector<std::string>& names, std::size_t many) {
  if (many == 0) return {{}};
  std::vector<std::vector<std::string>> all;
  for (std::size_t first = 0; first + many <= names.size(); ++first) {
    const std::vector<std::string> rest(names.begin() + static_cast<std::ptrdiff_t>(first) + 1, names.end());
    for (auto& subset : subsets(rest, many - 1)) {
      subset.insert(subset.begin(), names[first]);
      all.push_back(std::move(subset));
    }
  }
  return all;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += " " + name;
  return text;
}

// The case called tiny, one of middle size, which fills vectors, and of some sizes another in turn; none twice.
std::vector<const Case*> chosen_of(const std::vector<const Case*>& cases, const std::string& key, bool another) {
  std::vector<const Case*> chosen = {tiny_of(cases)};
  const auto add = [&](const Case* one) {
    if (std::find(chosen.begin(), chosen.end(), one) == chosen.end()) chosen.push_back(one);
  };
  add(cases[cases.size() / 2]);
  if (another || name_hash(key) % 3 == 0) add(cases[name_hash(key + " another") % cases.size()]);
  return chosen;
}

double operators_of(const FarSetting& far) {
  const Setting setting = far.setting();
  const NamedTensors generated = generated_inputs(far.component->spec, setting, 1);
  const CounterScope scope;
  (void)baseline_outputs(*far.component, setting, generated);
  constexpr double kReadsAnOperator = 10;  // in time
  return static_cast<double>(scope.snapshot().dispatches) +
         static_cast<double>(scope.snapshot().scalar_reads) / kReadsAnOperator;
}

// Of one in three a number lies beyond what any case has: more of something, or longer, than small sizes allow.
std::string number_beyond(const Component& component, const std::string& key, Case& one) {
  if (one.fixed || unit_draw(key + " beyond") > 1.0 / 3) return "";
  std::vector<std::pair<std::string, double>> all;
  for (const OptionSpec& option : component.spec.signature.options) {
    if (!is_number(option) || component.spec.signature.has_parts_with(option.name)) continue;
    for (const double value : values_beyond(component, option, key)) all.emplace_back(option.name, value);
  }
  if (all.empty()) return "";
  const auto& [name, value] = all[name_hash(key + " which") % all.size()];
  one.options[name] = value;
  char text[64];
  std::snprintf(text, sizeof text, "; beyond all %s %.6g", name.c_str(), value);
  return text;
}

}  // namespace

bool is_small_enough(const Component& component, const Setting& setting, double most_elements) {
  return input_elements(component, setting) <= most_elements &&
         (!component.spec.cost || component.spec.cost(setting).flops <= kMostFlops);
}

const Case* tiny_of(const std::vector<const Case*>& cases) {
  const auto is_tiny = [](const Case* one) { return one->name == "tiny" || one->name == "backward_tiny"; };
  const auto tiny = std::ranges::find_if(cases, is_tiny);
  return tiny == cases.end() ? cases.front() : *tiny;
}

Setting FarSetting::setting(Device device) const {
  Case one = *base;
  one.name = "far";
  for (const auto& [name, value] : sizes) one.sizes[name] = value;
  return completed(component->spec.signature, Setting{one, dtype, device});
}

std::string FarSetting::name() const {
  std::string text = component->spec.id() + "/" + base->name;
  for (const auto& [size, value] : sizes) text += " " + size + "=" + std::to_string(value);
  return text + drawn;
}

FarSetting FarSizes::drawn_setting(const Component& component, const std::vector<const Case*>& cases, Dtype dtype,
                                   const std::string& sizes) {
  const std::string key = sample_ + component.spec.id() + to_string(cases.front()->pass) + to_string(dtype) + sizes;
  Case base = *cases[name_hash(key + " base") % cases.size()];
  const std::string options = draw_options(component, key, base);
  const std::string beyond = number_beyond(component, key, base);
  return {&component,
          std::make_shared<const Case>(std::move(base)),
          "; " + to_string(dtype) + options + beyond,
          {},
          dtype,
          !beyond.empty()};
}

std::vector<FarSetting> FarSizes::settings(const std::vector<const Component*>& components, std::size_t together,
                                           bool drawn) {
  std::vector<FarSetting> all;
  const auto add = [&](FarSetting far, const std::vector<std::string>& sizes) {
    for (const auto& size : sizes) {
      if (!is_there(size_of(*far.component, size), *far.base)) return;
      far.sizes[size] = 0;
    }
    all.push_back(std::move(far));
  };
  for (const Component* const component : components)
    for (const auto& cases : growing_cases(*component)) {
      std::vector<std::string> names;
      for (const SizeSpec& size : component->spec.signature.sizes)
        if (together == 1 || size.high > kAlike.beyond) names.push_back(size.name);
      for (const auto& sizes : subsets(names, together)) {
        const std::string key = joined(sizes);
        if (drawn) {
          for (const Dtype dtype : component->spec.dtypes)
            for (int draw = 0; draw < (every_ && together == 2 ? 3 : 1); ++draw)
              if (component->supports(Variant::kOptimized, device_, dtype))
                add(drawn_setting(*component, cases, dtype, key + std::string(static_cast<std::size_t>(draw), '+')),
                    sizes);
          continue;
        }
        const bool by_itself = every_ && together == 1;
        for (const Case* const base :
             by_itself ? cases : chosen_of(cases, sample_ + component->spec.id() + key, every_))
          add({component, std::make_shared<const Case>(*base)}, sizes);
      }
    }
  return all;
}

double FarSizes::operators_of_base(const FarSetting& far) {
  const std::string name = far.component->spec.id() + far.base->name + far.drawn;
  if (const auto found = of_bases_.find(name); found != of_bases_.end()) return found->second;
  FarSetting base = far;
  base.sizes.clear();
  base.dtype = Dtype::kFp32;
  return of_bases_[name] = std::max(1.0, operators_of(base));
}

// How many times the base's operators one more of what the size counts takes. Of the first of a component's cases with
// these options: others take its share.
double FarSizes::more_operators(const FarSetting& far, const std::string& size) {
  const std::string what = far.component->spec.id() + to_string(far.base->pass) + size + far.drawn;
  if (const auto found = shares_.find(what); found != shares_.end()) return found->second;
  const std::int64_t near = far.base->sizes.at(size),
                     twice = std::min(size_of(*far.component, size).high, std::max<std::int64_t>(2 * near, 4));
  if (twice <= near) return shares_[what] = 0;
  FarSetting twofold = far;
  twofold.sizes = {{size, twice}};
  twofold.dtype = Dtype::kFp32;
  const double operators = operators_of_base(far);
  return shares_[what] =
             std::max(0.0, (operators_of(twofold) - operators) / static_cast<double>(twice - near)) / operators;
}

double FarSizes::times_the_operators(const FarSetting& far) {
  double times = 1;
  for (const auto& [size, value] : far.sizes)
    times *= std::max(1.0, 1 + more_operators(far, size) * static_cast<double>(value - far.base->sizes.at(size)));
  return times;
}

bool FarSizes::fits(const FarSetting& far) {
  const Setting setting = far.setting();  // where sizes do not go together, it throws before anything is measured
  return operators_of_base(far) * times_the_operators(far) <= kMostFarOperators &&
         is_small_enough(*far.component, setting, most_elements_);
}

bool FarSizes::extend_one(FarSetting& far, std::int64_t whole) {
  auto& [name, value] = *far.sizes.begin();
  const SizeSpec& size = size_of(*far.component, name);
  std::int64_t listed = 0;
  for (const Case& one : far.component->spec.cases)
    if (const auto given = one.sizes.find(name); !one.timed && given != one.sizes.end())
      listed = std::max(listed, given->second);
  if (operators_of_base(far) > kMostFarOperators) return false;
  value = std::min(size.high, farthest_of(*far.component, name));
  while (value > listed && !fits(far)) value = value * 3 / 4;
  if (value >= whole) value -= value % whole;
  return value > listed;
}

bool FarSizes::extend_all(FarSetting& far, std::int64_t whole) {
  const Together limits = far.drawn.empty() ? kAlike : kAnyhow;
  for (auto& [name, value] : far.sizes) {
    const std::string key = sample_ + far.component->spec.id() + far.base->name + far.drawn + name;
    value = std::min({between(limits.least, limits.most, unit_draw(key)), size_of(*far.component, name).high,
                      farthest_of(*far.component, name)});
    if (!far.drawn.empty() && whole == 1) value = beside_a_block(value, limits.beyond, unit_draw(key + " block"));
    value = value / whole * whole;
  }
  const auto shrunk = [&](std::int64_t value) { return std::min(value * 7 / 8, value - 1) / whole * whole; };
  // The largest, or of drawn ones any, so that they stay unlike each other.
  const auto next = [&](int step) {
    std::vector<std::int64_t*> all;
    for (auto& [name, value] : far.sizes)
      if (shrunk(value) > limits.beyond) all.push_back(&value);
    if (all.empty()) return static_cast<std::int64_t*>(nullptr);
    if (!far.drawn.empty()) return all[name_hash(far.drawn + std::to_string(step)) % all.size()];
    return *std::ranges::max_element(all, {}, [](const std::int64_t* value) { return *value; });
  };
  for (int step = 0; !fits(far); ++step) {
    std::int64_t* const size = next(step);
    if (size == nullptr) return false;
    *size = shrunk(*size);
  }
  return std::ranges::all_of(far.sizes, [&](const auto& size) { return size.second > limits.beyond; });
}

bool FarSizes::extend(FarSetting& far, std::int64_t whole) {
  for (auto& size : far.sizes) size.second = 0;
  return far.sizes.size() == 1 ? extend_one(far, whole) : extend_all(far, whole);
}

}  // namespace twinbench
