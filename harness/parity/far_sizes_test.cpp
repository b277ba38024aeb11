// Each size by itself far beyond what any case has, all others small, and each two beyond a hundred: what is cut off,
// wraps around or overflows there lies outside every listed case and nearly every draw. One run a setting, at one to
// five threads, judged as parity judges it. From small cases of each pass in every revision, and from another one in
// turn, and some pairs; TWINBENCH_EVERY takes all of them, TWINBENCH_FAR_COMPONENTS, an expression as of --filter, some
// components by their ids, TWINBENCH_FAR_TIMES tells each.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "harness/counters/counter_scope.h"
#include "harness/parity/held_out.h"
#include "harness/parity/reference.h"
#include "harness/runner/components_in_turn.h"
#include "harness/runner/share.h"
#include "src/common/error.h"
#include "src/common/filter_pattern.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// What one run may take: some hundredths of a second of any variant.
constexpr double kMostFlops = 3e7, kMostOperators = 10'000;
// Set-up builds a dense matrix of so many squared and inverts it.
constexpr std::int64_t kMostNodes = 1'000;

struct Far {
  const Component* component;
  const Case* base;
  std::string size;
  std::int64_t value = 0;
  std::string other = "";  // of two
  std::int64_t other_value = 0;
  std::string name() const {
    const std::string second = other.empty() ? "" : " " + other + "=" + std::to_string(other_value);
    return component->spec.id() + "/" + base->name + " " + size + "=" + std::to_string(value) + second;
  }
};

bool may_grow(const Case& one) { return !one.timed && !one.degenerate && one.specimen.empty(); }

Case with_size(const Far& far) {
  Case one = *far.base;
  one.name = "far";
  one.sizes[far.size] = far.value;
  if (!far.other.empty()) one.sizes[far.other] = far.other_value;
  return one;
}

// Operators of one run of the baseline, which may go through what the size counts one by one.
double operators_of(Far far, std::int64_t value) {
  far.value = value;
  const Setting setting = completed(far.component->spec.signature, {with_size(far), Dtype::kFp32});
  const NamedTensors generated = generated_inputs(far.component->spec, setting, 1);
  const CounterScope scope;
  (void)baseline_outputs(*far.component, setting, generated);
  constexpr double kReadsAnOperator = 10;  // in time
  return static_cast<double>(scope.snapshot().dispatches) +
         static_cast<double>(scope.snapshot().scalar_reads) / kReadsAnOperator;
}

// How many of them one more of what it counts takes. Of the first of a component's cases: others take its share.
double more_operators(const Far& far, std::int64_t near, std::int64_t twice, double operators) {
  static std::map<std::string, double> shares;
  const std::string what = far.component->spec.id() + " " + to_string(far.base->pass) + " " + far.size;
  if (const auto found = shares.find(what); found != shares.end()) return found->second * operators;
  const double each = std::max(0.0, (operators_of(far, twice) - operators) / static_cast<double>(twice - near));
  shares[what] = each / std::max(operators, 1.0);
  return each;
}

double operators_of_base(const Far& far) {
  static std::map<const Case*, double> of_bases;
  if (!of_bases.count(far.base))
    of_bases[far.base] = operators_of({far.component, far.base, far.size}, far.base->sizes.at(far.size));
  return of_bases.at(far.base);
}

bool fits(const Far& far, double operators, double most_elements) {
  const Setting setting = completed(far.component->spec.signature, {with_size(far), Dtype::kFp32});
  return operators <= kMostOperators && input_elements(*far.component, setting) <= most_elements &&
         (!far.component->spec.cost || far.component->spec.cost(setting).flops <= kMostFlops);
}

// As far as the limits allow; 0 where that is no further than the listed small cases.
std::int64_t farthest(Far far, const SizeSpec& size, double most_elements) {
  std::int64_t listed = 0;
  for (const Case& one : far.component->spec.cases)
    if (const auto given = one.sizes.find(size.name); !one.timed && given != one.sizes.end())
      listed = std::max(listed, given->second);
  const std::int64_t near = far.base->sizes.at(size.name),
                     twice = std::min(size.high, std::max<std::int64_t>(2 * near, 4));
  if (twice <= near) return 0;
  const double operators = operators_of_base(far);
  if (operators > kMostOperators) return 0;
  const double each = more_operators(far, near, twice, operators);
  const auto fits_at = [&](std::int64_t value) {
    far.value = value;
    return fits(far, operators + each * static_cast<double>(value - near), most_elements);
  };
  const bool nodes = far.component->spec.id() == "sem.cayley" && size.name == "dim";
  std::int64_t value = std::min<std::int64_t>(size.high, nodes ? kMostNodes : 100'003);
  while (value > listed && !fits_at(value)) value = value * 3 / 4;
  if (value >= 16 && name_hash(sample_of_tests() + far.name()) % 2 == 0) value -= value % 16;  // whole vectors
  return value > listed ? value : 0;
}

double elements_of(const Component& component, const Case& one) {
  return input_elements(component, completed(component.spec.signature, {one, Dtype::kFp32}));
}

// A sum a hundred times as long, in another order, may honestly err a little more than the rules for usual ones say.
bool nearly_right(const CheckResult& result) {
  constexpr double kMostRatio = 4;
  return result.in_comparison && std::all_of(result.outputs.begin(), result.outputs.end(), [&](const OutputRow& row) {
           return row.comparison.accepted() || row.comparison.worst_ratio <= kMostRatio;
         });
}

// Empty, or what is wrong; a setting that the component refuses by a typed error, or that is no case, is none.
std::string judged(const Far& far, Device device, int& cases) {
  Setting setting{with_size(far), Dtype::kFp32, device};
  try {
    setting = completed(far.component->spec.signature, setting);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const NamedTensors generated = generated_inputs(far.component->spec, setting, seed);
      const Reference reference(*far.component, setting, generated);
      NamedTensors outputs;
      try {
        outputs = variant_outputs(*far.component, Variant::kOptimized, setting, generated);
      } catch (const Error& error) {  // the path of a card has limits of its own
        if (device.is_cpu())
          return std::string("the baseline answers, and the optimized variant throws: ") + error.what();
        throw;
      }
      CheckResult result;
      reference.judge(outputs, result);
      const bool right = result.reason.empty() || nearly_right(result);
      // Of so many items more lie on a decision margin than in a case; they are set aside, and the others judged.
      if (!right && !reference.plainly_rejects(outputs) && !reference.no_case().empty()) continue;  // another seed
      ++cases;
      return right ? "" : result.reason;
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) return error.what();
  }
  return "";
}

bool is_wanted(const Component& component) {
  const char* const wanted = std::getenv("TWINBENCH_FAR_COMPONENTS");
  return !wanted || FilterPattern(wanted).found_in(component.spec.id());
}

// Those that start processes, hold the tapes of many windows, or damage files byte by byte: what they are made of is
// judged by itself.
bool is_too_slow(const Component& component) {
  const std::string id = component.spec.id();
  return id == "energy_flow.data_parallel" || id == "energy_flow.memory_lifetime" || id == "energy_flow.checkpoint";
}

// The case called tiny, one of middle size, which fills vectors, and for every third size another in turn; none twice.
// `cases` are sorted.
std::vector<const Case*> chosen_of(const std::vector<const Case*>& cases, const std::string& size) {
  const auto is_tiny = [](const Case* one) { return one->name == "tiny" || one->name == "backward_tiny"; };
  const auto tiny = std::find_if(cases.begin(), cases.end(), is_tiny);
  std::vector<const Case*> chosen = {tiny == cases.end() ? cases.front() : *tiny};
  const auto add = [&](const Case* one) {
    if (std::find(chosen.begin(), chosen.end(), one) == chosen.end()) chosen.push_back(one);
  };
  add(cases[cases.size() / 2]);
  if (!std::getenv("TWINBENCH_EVERY") && name_hash(sample_of_tests() + size) % 3 != 0) return chosen;
  for (const Case* const one : taken_in_turn(cases, 1, [&](const Case* other) { return other->name + size; })) add(one);
  return chosen;
}

// Those of one pass that may grow, from few elements to many.
struct Growing {
  const Component* component;
  std::vector<const Case*> cases;
};

std::vector<Growing> growing_cases(Device device) {
  std::vector<Growing> all;
  for (const Component& component : components()) {
    if (!is_wanted(component) || is_too_slow(component) ||
        !component.supports(Variant::kOptimized, device, Dtype::kFp32))
      continue;
    std::map<Pass, std::vector<const Case*>> passes;
    for (const Case& one : component.spec.cases)
      if (may_grow(one)) passes[one.pass].push_back(&one);
    for (auto& [pass, cases] : passes) {
      std::stable_sort(cases.begin(), cases.end(), [&](const Case* a, const Case* b) {
        return elements_of(component, *a) < elements_of(component, *b);
      });
      all.push_back({&component, std::move(cases)});
    }
  }
  return all;
}

bool is_there(const SizeSpec& size, const Case& one) {
  return one.sizes.count(size.name) && size.is_there(one.sizes.at(size.name));
}

std::vector<Far> far_settings(Device device, double most_elements) {
  std::vector<Far> all;
  for (const auto& [component, cases] : growing_cases(device))
    for (const SizeSpec& size : component->spec.signature.sizes)
      for (const Case* const base : chosen_of(cases, size.name)) {
        if (!is_there(size, *base)) continue;
        Far far{component, base, size.name};
        try {
          far.value = farthest(far, size, most_elements);
        } catch (const Error&) {  // a size that goes with others
        }
        if (far.value > 0) all.push_back(far);
      }
  return all;
}

constexpr std::int64_t kBeyond = 101, kLeastOfTwo = 130, kMostOfTwo = 300;

// Each two sizes of small cases of each pass, not yet as far as they will be.
std::vector<Far> pairs_of_sizes(Device device) {
  std::vector<Far> all;
  for (const auto& [component, cases] : growing_cases(device))
    for (const Case* const base : chosen_of(cases, "each two")) {
      std::vector<std::string> sizes;
      for (const SizeSpec& size : component->spec.signature.sizes)
        if (size.high >= kBeyond && is_there(size, *base)) sizes.push_back(size.name);
      for (std::size_t first = 0; first < sizes.size(); ++first)
        for (std::size_t second = first + 1; second < sizes.size(); ++second)
          all.push_back({component, base, sizes[first], 0, sizes[second], 0});
    }
  return all;
}

// Both as far as the limits allow, at most kMostOfTwo; false where that is not beyond a hundred.
bool set_both(Far& far, double most_elements) {
  const auto drawn = [&](const std::string& size) {
    const auto& sizes = far.component->spec.signature.sizes;
    const auto of = std::find_if(sizes.begin(), sizes.end(), [&](const SizeSpec& one) { return one.name == size; });
    const auto more = static_cast<std::int64_t>(name_hash(sample_of_tests() + far.name() + size) %
                                                static_cast<std::uint64_t>(kMostOfTwo - kLeastOfTwo));
    return std::min(of->high, kLeastOfTwo + more);
  };
  const std::int64_t first = drawn(far.size), second = drawn(far.other);
  const double operators = std::max(1.0, operators_of_base(far));
  double each[2], near[2];
  for (const int which : {0, 1}) {
    const Far one{far.component, far.base, which == 0 ? far.size : far.other};
    const std::int64_t of_base = far.base->sizes.at(one.size), twice = std::max<std::int64_t>(2 * of_base, 4);
    near[which] = static_cast<double>(of_base);
    each[which] = more_operators(one, of_base, twice, operators) / operators;
  }
  const auto times = [&](int which, std::int64_t value) {
    return std::max(1.0, 1 + each[which] * (static_cast<double>(value) - near[which]));
  };
  far.value = first, far.other_value = second;
  while (!fits(far, operators * times(0, far.value) * times(1, far.other_value), most_elements)) {
    std::int64_t& larger = far.value > far.other_value ? far.value : far.other_value;
    larger = larger * 7 / 8;
    if (larger < kBeyond) return false;
  }
  return true;
}

// Beyond the limits above, where it is known how far the base must go.
Far of_case(const std::string& id, const std::string& name, const std::string& size, std::int64_t value) {
  const Component& component = find_component(id);
  for (const Case& one : component.spec.cases)
    if (one.name == name) return Far{&component, &one, size, value};
  throw Error(ErrorKind::kInternal, id, name, "the case that this test grows is gone");
}

void expect_right(const std::vector<Far>& all, Device device) {
  int cases = 0;
  for (const Far& far : all) {
    if (!is_wanted(*far.component)) continue;
    constexpr std::array<int, 4> kThreads = {1, 2, 3, 5};
    const int threads = kThreads[name_hash(sample_of_tests() + far.name() + " threads") % kThreads.size()];
    at::set_num_threads(threads);
    const auto started = std::chrono::steady_clock::now();
    const std::string wrong = judged(far, device, cases);
    EXPECT_EQ(wrong, "") << far.name() << ", threads " << threads;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (std::getenv("TWINBENCH_FAR_TIMES"))
      std::printf("%7.3f s %s\n", seconds, far.name().c_str()), std::fflush(stdout);
  }
  at::set_num_threads(1);
  std::printf("%d settings judged\n", cases);
  EXPECT_GT(cases, 0) << "none, or TWINBENCH_FAR_COMPONENTS names no component that is asked";
}

TEST(FarSizes, EachByItself) {
  std::vector<Far> all = far_settings(Device(), 300'000);
  // Beyond what two bytes count, all of them asking; with noise, flows that live for a hundred steps.
  all.push_back(of_case("energy_flow.spawn_admission", "full", "slots", 70'001));
  all.push_back(of_case("energy_flow.flow_forward", "late_keys", "max_steps", 300));
  all.push_back(of_case("energy_flow.memory_footprint", "tiny", "steps", 601));
  expect_right(all, Device());
}

// Some of them in each revision.
std::vector<Far> in_turn(const std::vector<Far>& all, std::size_t most) {
  return taken_and_told(all, most, [](const Far& far) { return far.name(); });
}

std::vector<Far> far_pairs(Device device, std::size_t most, double most_elements) {
  std::vector<Far> all;
  for (Far& far : in_turn(pairs_of_sizes(device), most)) try {
      if (set_both(far, most_elements)) all.push_back(far);
    } catch (const Error&) {  // sizes that go with others
    }
  return all;
}

TEST(FarSizes, EachTwo) { expect_right(far_pairs(Device(), 120, 300'000), Device()); }

TEST(FarSizes, EachTwoOnThePathOfTheCard) { expect_right(far_pairs(Device::simt(), 40, 20'000), Device::simt()); }

TEST(FarSizes, EachByItselfOnThePathOfTheCard) {
  auto some = in_turn(far_settings(Device::simt(), 20'000), 15);
  some.push_back(of_case("energy_flow.spawn_admission", "full", "slots", 7'001));  // beyond what a thread keeps
  expect_right(some, Device::simt());
}

}  // namespace
}  // namespace twinbench
