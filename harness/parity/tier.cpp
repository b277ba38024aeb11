// Options, samples and order of the tiers.
#include "harness/parity/tier.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "harness/runner/share.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench {

Tier tier_named(const std::string& name) {
  if (name == "quick") return Tier::kQuick;
  if (name == "full") return Tier::kFull;
  throw Error(ErrorKind::kUnknownName, "--tier", name,
              "there are quick and full" + did_you_mean(name, {"quick", "full"}));
}

ParityOptions parity_options(Tier tier, Variant variant) {
  ParityOptions options;
  // A baseline is judged as the oracle that it is: worked examples, gradients, invariants, inputs left alone. What it
  // allocates or copies at set-up is its sin, not a fault.
  // Its runs are the slow ones: a second runnable's two are enough.
  if (variant == Variant::kBaseline) {
    options.repeats = 2;
    options.checks = {"golden",   "refusal", "specimen",    "gradient",  "invariant", "input_mutation", "determinism",
                      "relation", "late",    "sensitivity", "precision", "cost",      "global_state",   "outlives"};
  }
  if (tier == Tier::kFull) return options;
  options.repeat_seconds = 0.05;  // small cases get all their repeats within it
  options.gradient_seconds = 2;
  options.gradient_samples = 4;  // beside the directions, which go through all entries
  options.thorough_elements = 200'000;
  options.gradients_of_large = false;
  options.all_thread_counts = false;
  options.turns = 3;  // else these rules would add half of all other checks' time
  options.overlap_seconds = 0.01;
  return options;
}

// Whether the baseline takes so many steps that tier quick has no time for the case: seconds a run, of tens of runs.
static bool find_too_long(const Component& component, const Case& input_case) {
  constexpr std::int64_t kMostDispatches = 100'000;
  const Setting setting =
      Cell{&component, Variant::kBaseline, {}, component.spec.dtypes.front(), &input_case}.setting();
  for (const ProofCounter& counter : component.spec.proof)
    if (counter.counter == "dispatches" && counter.baseline && counter.baseline(setting) > kMostDispatches) return true;
  return false;
}

// Found once a case: a formula may have to draw the inputs.
static bool is_too_long(const Component& component, const Case& input_case) {
  static std::mutex mutex;
  static std::map<std::pair<const Component*, std::string>, bool> found;
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = found.try_emplace({&component, input_case.name}, false);
  if (is_new) place->second = find_too_long(component, input_case);
  return place->second;
}

std::string not_sampled(const Cell& cell, Tier tier, const std::string& sample) {
  if (tier == Tier::kFull || !is_large(*cell.input_case)) return "";
  const auto& spec = cell.component->spec;
  if (is_too_long(*cell.component, *cell.input_case))
    return "too long for tier quick: its baseline takes more than 100,000 steps; --tier full takes it";
  const auto rank = [&](const Case& input_case, Dtype dtype) {
    return name_hash(sample + " " + spec.id() + "/" + to_string(dtype) + "/" + input_case.name);
  };
  std::uint64_t chosen = std::numeric_limits<std::uint64_t>::max();
  for (const auto& input_case : spec.cases)
    for (const auto dtype : spec.dtypes)
      if (is_large(input_case) && !is_too_long(*cell.component, input_case))
        chosen = std::min(chosen, rank(input_case, dtype));
  if (rank(*cell.input_case, cell.dtype) == chosen) return "";
  return "not sampled: tier quick takes one large case in one dtype of a component; --tier full takes all";
}

std::string case_name(const Cell& cell) {
  return cell.component->spec.id() + "/" + to_string(cell.device) + "/" + cell.input_case->name;
}

int value_class(const Cell& cell) { return is_large(*cell.input_case) ? 2 : cell.component->has_kernel ? 0 : 1; }

std::vector<Cell> most_valuable_first(std::vector<Cell> cells, const std::string& sample) {
  const auto key_of = [&](const Cell& cell) {
    return std::make_tuple(value_class(cell), name_hash(sample + " " + cell.component->spec.id()),
                           to_string(cell.device), name_hash(sample + " " + case_name(cell)), cell.input_case,
                           cell.dtype);
  };
  // Made once a cell: a sort asks for each a dozen times.
  std::vector<std::pair<decltype(key_of(cells.front())), Cell>> keyed;
  keyed.reserve(cells.size());
  for (auto& cell : cells) keyed.emplace_back(key_of(cell), std::move(cell));
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = std::move(keyed[i].second);
  return cells;
}

}  // namespace twinbench
