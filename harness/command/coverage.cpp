// `twinbench coverage`: every fact that something is checked by, held against a checked-in list that may only grow.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <set>

#include "harness/command/command.h"
#include "harness/command/scenario.h"
#include "harness/command/signature_facts.h"
#include "harness/command/test_names.h"
#include "harness/command/tolerance_text.h"
#include "harness/compare/inputs.h"
#include "harness/instructions/counted_cells.h"
#include "harness/memory/tensor_hash.h"
#include "harness/parity/parity.h"
#include "harness/runner/share.h"
#include "harness/selftest/selftest.h"
#include "src/common/error.h"
#include "src/common/one_line.h"
#include "src/formats/file_io.h"
#include "src/formats/json_text.h"
#include "src/formats/text_file.h"
#include "src/golden_file.h"
#include "src/inputs.h"
#include "src/spec_tables.h"

namespace twinbench {
namespace {

using Facts = std::set<std::string>;

std::string whole(double value) { return std::to_string(std::llround(value)); }

// Of what goes in and what is expected: a worked example that is weakened keeps its name.
std::string contents_of(const Golden& golden) {
  std::uint64_t sum = 0;
  for (const auto* set : {&golden.inputs, &golden.expected, &golden.said})
    for (const auto& [name, tensor] : *set)
      if (tensor.defined()) sum = (sum * 31 + name_hash(name)) * 31 + hash_of(tensor);
  char digits[24];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(sum));
  return digits;
}

// What the specification's record says that the engines hold variants to.
void add_component(const Component& component, Facts& facts) {
  const auto& spec = component.spec;
  const auto add = [&](const std::string& what) { facts.insert(spec.id() + " " + what); };
  add("sin: " + spec.sin);
  add(spec.batch_size.empty() ? "is not batched" : "is batched by " + spec.batch_size);
  if (!spec.host_work.empty()) add("works beside operators: " + spec.host_work);
  add(spec.ambiguous ? "leaves out what rounding may decide" : "compares all");
  for (const auto& output : spec.signature.outputs) add("output " + output.name + " " + text_of(output.tolerance));
  add("gradients " + text_of(spec.signature.gradient));
  for (const auto& proof : spec.proof) add("proof " + proof.counter + ": " + proof.formula);
  for (const auto& golden : worked_examples(spec))
    add("golden " + golden.name + " +-" + fact_number(golden.absolute) + " of " + contents_of(golden));
  for (const auto& invariant : spec.invariants) add("invariant " + invariant.name);
  for (const auto& relation : spec.relations) add("relation " + relation.name + (relation.exact ? " exact" : ""));
  for (const auto& refusal : spec.refusals) add("refusal " + refusal.name + ": " + name_of(refusal.kind));
  // Ranges and limits: sizes outside them are never drawn.
  for (const auto& size : spec.signature.sizes) {
    add("size " + size.name + " " + std::to_string(size.low) + " to " + std::to_string(size.high));
    if (!size.part_of.empty())
      add("size " + size.name + " with " + size.part_of + " from " + std::to_string(size.least));
    else if (size.least > 0)
      add("size " + size.name + " drawn from " + std::to_string(size.least));
  }
  // What cases and scenarios leave out is this.
  for (const auto& option : spec.signature.options)
    add("option " + option.name + " " + fact_number(option.otherwise) + " of " + fact_number(option.low) + " to " +
        fact_number(option.high));
  std::string limits;
  for (const auto& limit : spec.card_limits)
    limits += " " + limit.of.text() + " <= " + std::to_string(limit.most) +
              (limit.pass ? " (" + to_string(*limit.pass) + ")" : "") + ";";
  add("card limits:" + (limits.empty() ? " none" : limits));
  for (const auto& claim : spec.claims) add("claim " + claim.document + ": " + claim.figure);
  for (const auto& input : spec.cases) {
    std::string line = "case " + input.name + " " + input.distribution + (input.timed ? " timed" : "") +
                       (input.degenerate ? " degenerate" : "") + (input.fixed ? " fixed" : "");
    for (const auto& [symbol, size] : input.sizes) line += ' ' + symbol + '=' + std::to_string(size);
    for (const auto& [option, value] : input.options) line += ' ' + option + '=' + fact_number(value);
    add(line);
  }
}

// Of spec.json beside the record: options that a variant may not ignore, and how wrong documented mistakes are.
void add_notes(const ComponentSpec& spec, Facts& facts) {
  const std::string text = spec_text(spec.id());
  const auto tables = nlohmann::json::parse(text.empty() ? "{}" : text), none = nlohmann::json::object();
  const auto excused = tables.value("no_output_shows", none), specimens = tables.value("specimens", none);
  for (const auto& option : spec.signature.options)
    if (!option.of_inputs && !excused.contains(option.name))
      facts.insert(spec.id() + " option " + option.name + " must be followed");
  for (const auto& [name, outputs] : specimens.items())
    for (const auto& [output, measures] : outputs.items())
      facts.insert(spec.id() + " specimen " + name + " " + output + " " + measures.dump());
}

// What a case is held to beside its tolerances, and what a small one holds.
void add_rules_of_cases(const ComponentSpec& spec, Facts& facts) {
  for (const auto& input : spec.cases) {
    const Setting setting = completed(spec.signature, {input, spec.dtypes.front(), Device()});
    const std::string of_case = spec.id() + " case " + input.name;
    if (spec.most_launches) facts.insert(of_case + " launches at most " + std::to_string(spec.most_launches(setting)));
    const std::string other = spec.custom_gradient ? spec.custom_gradient(setting) : "";
    if (input.pass == Pass::kBackward)
      facts.insert(of_case + (other.empty() ? " gradient: the derivative" : " gradient: " + other));
    if (input.timed) continue;
    const NamedTensors inputs = generated_inputs(spec, setting, 1);
    facts.insert(of_case + " holds " + digits_of(inputs));
    if (!spec.bound_factor || input.degenerate) continue;
    for (const auto& output : spec.signature.outputs)
      if (const double factor = spec.bound_factor(output.name, inputs, setting); factor != 1)
        // The power alone: digits of drawn inputs may be the machine's.
        facts.insert(of_case + " bound of " + output.name + " times 2^" + whole(std::log2(factor)));
  }
}

// A cost that changes moves every distance from the roof. Of the first case of each pass that is none of nothing.
void add_costs(const ComponentSpec& spec, Facts& facts) {
  for (const auto pass : {Pass::kForward, Pass::kBackward}) {
    const auto first = std::find_if(spec.cases.begin(), spec.cases.end(),
                                    [&](const Case& one) { return one.pass == pass && !one.degenerate; });
    if (first == spec.cases.end()) continue;
    for (const auto dtype : spec.dtypes) {
      const Cost cost = spec.cost(completed(spec.signature, {*first, dtype, Device()}));
      facts.insert(spec.id() + " cost " + first->name + " " + to_string(dtype) + ": " + whole(cost.bytes) + " bytes, " +
                   whole(cost.flops) + " FLOPs");
    }
  }
}

Facts all_facts(const std::string& scenario_folder) {
  Facts facts;
  for (const auto& component : components()) {
    add_component(component, facts);
    add_notes(component.spec, facts);
    add_rules_of_cases(component.spec, facts);
    add_costs(component.spec, facts);
    facts.merge(signature_facts(component.spec));
  }
  for (const auto& cell : all_cells())
    if (cell.device != c10::DeviceType::CUDA) facts.insert("cell " + cell.name());
  for (const auto& check : parity_check_names()) facts.insert("parity check " + check);
  for (const auto& row : selftest_cases())
    facts.insert("selftest " + row.name + (row.wrong() ? " caught by " + row.caught_by : " accepted"));
  for (const auto& fact : scenario_facts(scenario_folder)) facts.insert(fact);
  facts.merge(test_facts("."));
  for (const auto& cell : counted_by_instructions(all_cells())) facts.insert("instructions of " + cell.name());
  for (const auto& cell : timed_baselines(all_cells())) facts.insert("instructions of " + cell.name());
  for (const auto& mutation : read_json_file("ci/mutations.json", "list of mutations"))
    facts.insert("mutation " + mutation.value("name", "") + " in " + mutation.value("file", ""));
  return facts;
}

Facts pinned_facts(const std::string& path) {
  Facts facts;
  for (const std::string& line : lines_if_any(path, "coverage list"))
    if (!line.empty()) facts.insert(line);
  return facts;
}

Facts without(const Facts& all, const Facts& some) {
  Facts rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::inserter(rest, rest.end()));
  return rest;
}

}  // namespace

int coverage_command(const std::string& pins_file, const std::string& scenario_folder, bool pin, bool drop) {
  const Facts pinned = pinned_facts(pins_file);  // first: what is no list is told at once
  const Facts present = all_facts(scenario_folder);
  const Facts gone = without(pinned, present), more = without(present, pinned);
  if (!pinned.empty() && gone.size() == pinned.size())  // nor is it overwritten with --pin
    throw Error(ErrorKind::kBadFile, "--pins", pins_file, "not one of its lines is a fact: give a coverage list");
  const bool may_write = pin && (gone.empty() || drop);
  for (const auto& fact : gone) std::cout << "  gone: " << one_line(fact) << '\n';
  if (!pin)
    for (const auto& fact : more) std::cout << "  not pinned: " << one_line(fact) << '\n';
  if (may_write) {
    std::string text;
    for (const auto& fact : present) text += fact + '\n';
    write_file(pins_file, as_bytes(text));
    std::cout << "pinned " << present.size() << " facts in " << one_line(pins_file) << '\n';
    return kExitPass;
  }
  std::cout << "coverage: " << pinned.size() << " facts, " << gone.size() << " gone, " << more.size() << " more\n";
  if (!gone.empty())
    std::cout << "Coverage may only grow: bring back what is gone, or say so with `twinbench coverage --pin --drop`.\n";
  else if (!more.empty())
    std::cout << "Pin what is new with `twinbench coverage --pin`, so that it cannot vanish unseen.\n";
  return gone.empty() && more.empty() ? kExitPass : kExitFailure;
}

}  // namespace twinbench
