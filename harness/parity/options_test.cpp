// Every option of every component is set by a case, and a variant that ignores it is caught there or by held-out draws.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/compare/inputs.h"
#include "harness/parity/drawn_inputs.h"
#include "harness/parity/held_out.h"
#include "harness/parity/reference.h"
#include "harness/parity/shared_case.h"
#include "harness/parity/tier.h"
#include "harness/runner/components_in_turn.h"
#include "src/inputs.h"
#include "src/spec_tables.h"

namespace twinbench {
namespace {

bool sets(const Case& one, const OptionSpec& option) {
  const auto given = one.options.find(option.name);
  return given != one.options.end() && given->second != option.otherwise;
}

bool is_documented_mistake(const ComponentSpec& spec, const OptionSpec& option) {
  return std::any_of(spec.cases.begin(), spec.cases.end(),
                     [&](const Case& one) { return one.specimen == option.name; });
}

TEST(Options, EveryOneIsSetByACase) {
  for (const auto& component : components())
    for (const auto& option : component.spec.signature.options)
      EXPECT_TRUE(std::any_of(component.spec.cases.begin(), component.spec.cases.end(),
                              [&](const Case& one) { return !one.timed && sets(one, option); }))
          << component.spec.id() << ": no small case sets " << option.name << ": a variant may ignore it";
}

// Empty, or what sees that a twin, told the default of the option, is wrong about the case's inputs.
std::string caught(const Component& component, const Case& one, const OptionSpec& option) {
  const Setting setting = completed(component.spec.signature, {one, component.spec.dtypes.front()});
  Setting blind = setting;
  blind.input_case.options[option.name] = option.otherwise;
  const NamedTensors generated = generated_inputs(component.spec, setting, 1);
  const Reference reference(component, setting, generated);
  const NamedTensors inputs = placed_inputs(generated, setting.dtype, setting.device);
  const bool optimized = component.supports(Variant::kOptimized, setting.device, setting.dtype);
  NamedTensors outputs;
  try {
    const auto twin = component.make(optimized ? Variant::kOptimized : Variant::kBaseline, inputs, blind);
    run_afresh(*twin);
    outputs = copied_outputs(*twin);
  } catch (const Error&) {  // no such twin can be had: of this case nothing follows
    return "";
  }
  CheckResult judged;
  reference.judge(outputs, judged);
  if (!judged.reason.empty()) return judged.reason;
  for (const auto& invariant : component.spec.invariants) {
    if (setting.backward()) break;
    if (const std::string broken = invariant.broken(generated, outputs, setting); !broken.empty()) return broken;
  }
  return "";
}

std::string caught_in_some_case(const Component& component, const OptionSpec& option) {
  for (const auto& one : component.spec.cases) {
    if (one.timed || !one.specimen.empty() || !sets(one, option)) continue;
    if (const std::string how = caught(component, one, option); !how.empty()) return one.name + ": " + how;
  }
  return "";
}

// "no_output_shows" of spec.json: why a variant may do without the option; and that is true.
TEST(Options, WhoIgnoresOneIsCaughtInACase) {
  at::set_num_threads(1);
  constexpr std::size_t kComponents = 4;
  const auto all = [](const Component& one) { return !one.spec.signature.options.empty(); };
  for (const Component* const component : components_in_turn(kComponents, all)) {
    const std::string id = component->spec.id(), text = spec_text(id);
    const auto excused = nlohmann::json::parse(text.empty() ? "{}" : text).value("no_output_shows", nlohmann::json());
    for (const auto& [name, why] : excused.items())
      EXPECT_TRUE(component->spec.signature.find_option(name) && !why.get<std::string>().empty())
          << id << ": no_output_shows names " << name << ", which is no option, or gives no reason";
    for (const auto& option : component->spec.signature.options) {
      if (option.of_inputs || is_documented_mistake(component->spec, option)) continue;
      const std::string how = caught_in_some_case(*component, option);
      if (excused.contains(option.name))
        EXPECT_TRUE(how.empty() || how.find(": invalid case") != std::string::npos)  // that is no judgement
            << id << ": no_output_shows " << option.name << ", and a case does: " << how;
      else
        EXPECT_NE(how, "") << id << ": a variant that ignores " << option.name << " passes every small case";
    }
  }
}

// Options that small cases, from which sizes are drawn, have at more than one value, and that decide no sizes.
std::set<std::string> options_to_draw(const Component& component) {
  std::set<std::string> several;
  for (const auto& option : component.spec.signature.options)
    for (const auto& one : component.spec.cases)
      if (!option.of_inputs && !component.spec.signature.has_parts_with(option.name) && !one.timed && !one.degenerate &&
          !one.fixed && one.specimen.empty() && sets(one, option))
        several.insert(option.name);
  return several;
}

// Each is drawn: some revision's has another value than the case that it starts from.
TEST(Options, HeldOutDrawsTakeOtherValuesThanTheirCase) {
  constexpr int kRevisions = 60;
  for (const auto& component : components()) {
    std::set<std::string> left = options_to_draw(component);
    for (int revision = 0; revision < kRevisions && !left.empty(); ++revision) {
      const HeldOutDraw draw = held_out_draw(component, "revision " + std::to_string(revision), 0, false);
      const std::string base = draw.text.substr(5, draw.text.find(':') - 5);  // "from <case>: ..."
      const auto& cases = component.spec.cases;
      const auto from = std::find_if(cases.begin(), cases.end(), [&](const Case& one) { return one.name == base; });
      ASSERT_NE(from, cases.end()) << draw.text;
      const Setting had = completed(component.spec.signature, {*from, component.spec.dtypes.front()}),
                    has = completed(component.spec.signature, {draw.input_case, component.spec.dtypes.front()});
      std::erase_if(left, [&](const std::string& name) { return had.option(name) != has.option(name); });
    }
    EXPECT_TRUE(left.empty()) << component.spec.id() << ": " << *left.begin() << " is never drawn";
  }
}

// An optimized variant that is told the default of one option.
const char* g_ignored = nullptr;
std::unique_ptr<Runnable> ignoring(const NamedTensors& inputs, const Setting& setting) {
  const Component& right = find_component("energy_flow.carrier_heads");
  Setting told = setting;
  if (g_ignored) told.input_case.options[g_ignored] = right.spec.signature.find_option(g_ignored)->otherwise;
  return right.optimized(inputs, told);
}

// Of so many revisions, how many see it.
int seen_by_held_out_draws(const char* ignored, int revisions) {
  g_ignored = ignored;
  Component component = find_component("energy_flow.carrier_heads");
  component.optimized = ignoring;
  Case held_out;
  held_out.name = kHeldOut;
  const Cell cell{&component, Variant::kOptimized, Device(), Dtype::kFp32, &held_out};
  ParityOptions options = parity_options(Tier::kQuick, Variant::kOptimized);
  options.checks = {"oracle", "gradient"};
  int seen = 0;
  for (int revision = 0; revision < revisions; ++revision) {
    SharedCases cases;
    const auto rows = judge_held_out(cell, "revision " + std::to_string(revision), options, cases);
    seen += std::any_of(rows.begin(), rows.end(), [](const CheckResult& row) {
      return row.verdict == CheckVerdict::kFail || row.verdict == CheckVerdict::kError;
    });
  }
  return seen;
}

TEST(Options, HeldOutDrawsSeeWhoIgnoresOne) {
  at::set_num_threads(1);
  constexpr int kRevisions = 12;
  EXPECT_EQ(seen_by_held_out_draws(nullptr, kRevisions), 0);
  for (const char* const option : {"seed", "attempt", "global_step", "most_spawned", "noise_on_z"})
    EXPECT_GT(seen_by_held_out_draws(option, kRevisions), 0) << option;
}

}  // namespace
}  // namespace twinbench
