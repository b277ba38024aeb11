// The order of the checks, which apply, and what an exception becomes.
#include "harness/parity/parity.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "harness/gpu/nvtx_range.h"
#include "harness/memory/tracked_allocator.h"
#include "harness/parity/card_exceptions.h"
#include "harness/parity/cost_check.h"
#include "harness/parity/held_out.h"
#include "harness/parity/subject.h"
#include "harness/runner/share.h"
#include "harness/runner/told_error.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"
#include "src/golden_file.h"

namespace twinbench {

const std::vector<std::string>& parity_check_names() {
  static const std::vector<std::string> names = {"specimen",
                                                 "golden",
                                                 "refusal",
                                                 "oracle",
                                                 "vacuity",
                                                 "determinism",
                                                 "input_mutation",
                                                 "guard_bands",
                                                 "non_contiguous",
                                                 "stale",
                                                 "batch_invariance",
                                                 "poisoned_neighbour",
                                                 "gradient",
                                                 "invariant",
                                                 "relation",
                                                 "ways",
                                                 "threads",
                                                 "carried",
                                                 "instances",
                                                 "sensitivity",
                                                 "precision",
                                                 "cost",
                                                 "late",
                                                 "global_state",
                                                 "outlives"};
  return names;
}

namespace {

using Check = std::function<void(CheckResult&)>;

CheckResult perform(const std::string& cell, const std::string& name, std::uint64_t seed, const Check& check) {
  const NvtxRange range(cell, name.c_str());
  CheckResult result;
  result.check = name;
  result.seed = seed;
  const auto start = std::chrono::steady_clock::now();
  try {
    check(result);
  } catch (const std::exception& error) {
    result.verdict = CheckVerdict::kError;
    result.reason = told(error);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

// What holds for every variant is judged once; this cell's row keeps its own seconds.
void take(const CheckResult& shared, CheckResult& result) {
  result.verdict = shared.verdict;
  result.reason = shared.reason;
  result.in_comparison = shared.in_comparison;
  result.vacuity = shared.vacuity;
}

bool is_first_case(const Component& component, const Setting& setting) {
  return !component.spec.cases.empty() && component.spec.cases.front().name == setting.input_case.name;
}

}  // namespace

bool takes_turn(const std::string& rule, const Component& component, const Setting& setting,
                const ParityOptions& options) {
  if (options.turns <= 1 || setting.input_case.name == kHeldOut || is_first_case(component, setting)) return true;
  const std::string drawn = options.sample + " " + rule + " " + component.spec.id() + "/" + to_string(setting.dtype) +
                            "/" + setting.input_case.name;
  return name_hash(drawn) % static_cast<std::uint64_t>(options.turns) == 0;
}

std::vector<CheckResult> check_cell(const Component& component, Variant variant, const Setting& setting,
                                    std::uint64_t seed, const ParityOptions& options, SharedCases& cases) {
  const auto& names = parity_check_names();
  for (const auto& name : options.checks)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error(ErrorKind::kUnknownName, "--checks", name,
                  "there are " + std::to_string(names.size()) + " checks" + did_you_mean(name, names));

  const std::string cell_name = Cell{&component, variant, setting.device, setting.dtype, &setting.input_case}.name();
  std::vector<CheckResult> results;
  static bool opened = false;
  if (setting.device.is_cuda() && !opened) open_device(setting.device), opened = true;
  TrackedAllocator::instance();  // installed once and for good: before the state that must stay
  const GlobalState state_before = GlobalState::now();
  const Survivors alive_before = Survivors::now();
  const auto wanted = [&](const std::string& name) { return options.checks.empty() || options.checks.count(name); };
  const std::string unordered = why_never_the_same_bits(component.spec, variant, setting);
  const auto add = [&](const std::string& name, bool applies, const Check& check) {
    if (!applies || !wanted(name)) return;
    results.push_back(perform(cell_name, name, seed, [&](CheckResult& result) {
      if (!unordered.empty() && asks_for_the_same_bits(name)) return result.skip(unordered);
      check(result);
    }));
  };
  if (const std::string limit = library_limit_of(component.spec, variant, setting); !limit.empty()) {
    add("oracle", true, [&](CheckResult& result) { result.skip("LibTorch's own way on a card: " + limit); });
    return results;
  }
  const bool first_case = is_first_case(component, setting);
  if (!setting.input_case.specimen.empty()) {  // a documented mistake: it must be seen, and nothing else holds of it
    OracleCache oracles;
    add("specimen", true, [&](CheckResult& result) { check_specimen(component, setting, seed, oracles, result); });
    return results;
  }
  add("golden", first_case && has_worked_examples(component.spec),
      [&](CheckResult& result) { check_golden(component, variant, setting, result); });
  add("refusal", first_case && setting.dtype == component.spec.dtypes.front() && !component.spec.refusals.empty(),
      [&](CheckResult& result) { check_refusals(component, variant, setting, seed, result); });
  const auto needs_no_run = [](const std::string& name) {
    return name == "golden" || name == "refusal" || name == "specimen";
  };
  if (!options.checks.empty() && std::all_of(options.checks.begin(), options.checks.end(), needs_no_run))
    return results;

  // The right answer first, then the candidate: recycled memory must not hold the candidate's answer.
  std::unique_ptr<Subject> subject;
  LifeFindings life;
  bool large = false;
  CheckResult oracle = perform(cell_name, "oracle", seed, [&](CheckResult& result) {
    SharedCase& shared = cases.of(component, setting, seed);
    life.changed = GlobalState::now().changed_since(state_before);
    if (!life.changed.empty())
      life.changed = "before its first life, in worked examples or its baseline: " + life.changed;
    large = shared.elements() > options.thorough_elements;
    auto candidate = std::make_unique<Subject>(
        Subject{component, variant, setting, seed, options, shared, shared.generated(), shared.reference(), {}, {}, 0});
    if (variant == Variant::kBaseline && !wanted("oracle")) {  // its first run is the reference's
      candidate->outputs = shared.reference().baseline_run();
      subject = std::move(candidate);
      return;
    }
    // Recycled memory may hold the right answer of another variant: where no guard_bands follow, fresh memory is
    // poisoned.
    std::optional<GuardScope> poison;
    if (large && setting.device.is_cpu()) poison.emplace();
    // On simt every access of a kernel is watched.
    if (setting.device.is_simt()) poison.emplace(Guard::kPages);
    const ChoiceWatch watch;
    const std::string changed = life.changed;
    const std::uint64_t expected = shared.reference().hash();
    life = watched_life(component, variant, setting, candidate->placed(), shared.reference().outputs(), nullptr,
                        [&](const NamedTensors& outputs) {
                          shared.reference().judge(outputs, result);
                          for (const auto& [name, tensor] : outputs)
                            if (!tensor.defined())
                              throw Error(ErrorKind::kInternal, "output '" + name + "'", "undefined",
                                          "run() must fill every output");
                        });
    candidate->outputs = life.outputs;
    candidate->choices = watch.made();
    if (shared.reference().hash() != expected) life.changed = "it changes the expected values";
    if (!changed.empty()) life.changed = changed;
    subject = std::move(candidate);
  });
  const bool ran = subject != nullptr;
  if (ran && oracle.verdict == CheckVerdict::kPass && !subject->reference.left_out().empty())
    oracle.skip(subject->reference.left_out());
  if (wanted("oracle") || !ran) results.push_back(std::move(oracle));
  if (!ran) return results;

  Subject& cell = *subject;
  const auto thorough = [&](const std::string& name, bool applies, auto check) {
    add(name, applies, [&](CheckResult& result) {
      if (large) return result.skip("large case: the smaller ones show this");
      check(cell, result);
    });
  };
  const std::string not_its_turn = "not this case's turn: one in " + std::to_string(options.turns) + ", by --sample";
  // One draw for both that need the right answer to other inputs and weights.
  const auto in_turn = [&](const std::string& name, bool applies, auto check) {
    thorough(name, applies, [&](Subject& subject, CheckResult& result) {
      if (!takes_turn(name == "sensitivity" ? "instances" : name, component, setting, options))
        return result.skip(not_its_turn);
      check(subject, result);
    });
  };
  const bool backward = setting.input_case.pass == Pass::kBackward, batched = batch_items(component.spec, setting) > 1;
  add("vacuity", !setting.input_case.degenerate, [&](CheckResult& result) { take(cell.shared.vacuity(), result); });
  add("determinism", true, [&](CheckResult& result) { check_determinism(cell, result); });
  add("input_mutation", true, [&](CheckResult& result) { check_input_mutation(cell, result); });
  thorough("guard_bands", true, check_guard_bands);
  thorough("non_contiguous", true, check_non_contiguous);
  thorough("stale", !setting.input_case.degenerate, check_stale);
  thorough("batch_invariance", batched, check_batch_invariance);
  thorough("poisoned_neighbour", batched, check_poisoned_neighbour);
  add("gradient", backward && variant == Variant::kBaseline && setting.device.is_cpu(), [&](CheckResult& result) {
    if (large || (setting.input_case.timed && !options.gradients_of_large))
      return result.skip("large case: the smaller ones show this");
    if (const auto& given = setting.input_case.options;
        given.count("not_differentiable") && given.at("not_differentiable") != 0)
      return result.skip("the case's inputs lie on a kink by design: central differences see both sides of it");
    if (const std::string why = component.spec.custom_gradient ? component.spec.custom_gradient(setting) : "";
        !why.empty())
      return result.skip("custom gradient: " + why);
    take(cell.shared.gradient(options), result);
  });
  add("invariant", !backward && !component.spec.invariants.empty(),
      [&](CheckResult& result) { check_invariants(cell, result); });
  thorough("relation", !component.spec.relations.empty(), check_relations);
  thorough("ways", !cell.choices.empty(), check_ways);
  add("threads", true, [&](CheckResult& result) {
    if (large && variant != Variant::kOptimized) return result.skip("large case: the smaller ones show this");
    if (!large && !takes_turn("threads", component, setting, options)) return result.skip(not_its_turn);
    check_threads(cell, large, result);
  });
  in_turn("carried", component.spec.signature.has_state(), check_carried);
  in_turn("instances", true, check_instances);
  if (variant == Variant::kBaseline)  // it shows this once of its component
    thorough("sensitivity", !setting.input_case.degenerate, check_sensitivity);
  else
    in_turn("sensitivity", !setting.input_case.degenerate, check_sensitivity);
  in_turn("precision", !setting.input_case.degenerate && variant == Variant::kBaseline, check_precision);
  in_turn(
      "cost",
      setting.input_case.name != kHeldOut && !setting.input_case.degenerate && variant == Variant::kBaseline &&
          setting.device.is_cpu(),
      [](const Subject& one, CheckResult& result) { check_cost(one.component, one.setting, one.generated, result); });
  const bool lives_again = !large && takes_turn("late", component, setting, options);
  double second_seconds = 0;
  if (wanted("late") || wanted("global_state") || wanted("outlives")) {
    // A second life, whose inputs are overwritten between run() and outputs(). A baseline's first is the reference's.
    LifeFindings second;
    const CheckResult lived = perform(cell_name, "late", seed, [&](CheckResult&) {
      if (lives_again)
        second = watched_life(component, variant, setting, cell.placed(), cell.outputs_declared(), &cell.outputs);
    });
    second_seconds = lived.seconds;
    if (lived.verdict == CheckVerdict::kError) second.late = lived.reason;
    if (life.late.empty()) life.late = second.late;
    if (life.changed.empty()) life.changed = second.changed;
    if (life.left_behind.empty()) life.left_behind = second.left_behind;
    if (life.changed.empty()) life.changed = GlobalState::now().changed_since(state_before);
    cell.repeated = {};
    Survivors now = Survivors::now();
    now.threads = 0;  // the pool has become larger
    if (life.left_behind.empty()) life.left_behind = now.more_than(alive_before);
  }
  const auto of_life = [&](const std::string& name, void (*check)(const LifeFindings&, CheckResult&)) {
    add(name, true, [&, check](CheckResult& result) {
      check(life, result);
      if (result.verdict != CheckVerdict::kPass || lives_again) return;
      if (large && variant == Variant::kBaseline) result.skip("large case: the smaller ones show this");
      if (!large && (name == "late" || variant == Variant::kBaseline)) result.skip(not_its_turn);
    });
  };
  of_life("late", check_late);
  if (wanted("late")) results.back().seconds += second_seconds;  // the life was lived for it
  of_life("global_state", check_global_state);
  of_life("outlives", check_outlives);
  return results;
}

std::vector<CheckResult> check_cell(const Component& component, Variant variant, const Setting& setting,
                                    std::uint64_t seed, const ParityOptions& options) {
  SharedCases cases;
  return check_cell(component, variant, setting, seed, options, cases);
}

}  // namespace twinbench
