// `twinbench list --scenarios`: scenarios, kinds of experiment and training runs, for readers and for coverage.
#include <iostream>
#include <set>

#include "harness/command/scenario.h"
#include "harness/command/tolerance_text.h"
#include "scenarios/runner/judge.h"
#include "scenarios/runner/select.h"
#include "src/formats/json_text.h"

namespace twinbench {
namespace {

using nlohmann::json;

json names_of(const RunSource& source, bool devices) {
  json names = json::array();
  if (devices)
    for (const auto& device : devices_of(source)) names.push_back(to_string(device));
  else
    for (const auto variant : source.variants) names.push_back(to_string(variant));
  return names;
}

json keys_of(const std::vector<Key>& keys) {
  json rows = json::array();
  for (const auto& key : keys)
    rows.push_back({{"name", key.name}, {"meaning", key.meaning}, {"default", key.otherwise}});
  return rows;
}

json scenario_row(const ScenarioConfig& config) {
  const auto& source = catalogue().run(config.run, config.file + ": run");
  return {{"name", config.name},
          {"pipeline", config.pipeline()},
          {"source", config.source},
          {"part", config.part},
          {"experiment", config.experiment},
          {"run", config.run},
          {"tier", to_string(config.tier)},
          {"summary", config.summary},
          {"variants", names_of(source, false)},
          {"devices", config.card_only ? json{"cuda"} : names_of(source, true)},
          {"components", source.components},
          {"shows", {{"baseline", config.baseline_shows}, {"optimized", config.optimized_shows}}},
          {"file", config.file}};
}

json everything(const std::vector<ScenarioConfig>& configs) {
  json all = {{"scenarios", json::array()}, {"experiments", json::array()}, {"runs", json::array()}};
  for (const auto& config : configs) all["scenarios"].push_back(scenario_row(config));
  for (const auto& kind : catalogue().experiments) {
    json measures = json::array();
    for (const auto& measure : kind.measures)
      measures.push_back({{"name", measure.name}, {"meaning", measure.meaning}, {"required", measure.required}});
    all["experiments"].push_back(
        {{"name", kind.name}, {"proves", kind.proves}, {"keys", keys_of(kind.keys)}, {"measures", measures}});
  }
  for (const auto& source : catalogue().runs)
    all["runs"].push_back({{"id", source.id()},
                           {"summary", source.summary},
                           {"components", source.components},
                           {"variants", names_of(source, false)},
                           {"devices", names_of(source, true)},
                           {"sizes", keys_of(source.sizes)},
                           {"options", keys_of(source.options)}});
  return all;
}

}  // namespace

std::vector<std::string> scenario_facts(const std::string& folder) {
  std::vector<std::string> facts;
  for (const auto& config : read_scenarios(folder, catalogue())) {
    const std::string scenario = "scenario " + config.name + " ";
    std::string sizes;
    for (const auto& [symbol, size] : config.sizes) sizes += ' ' + symbol + '=' + std::to_string(size);
    facts.push_back(scenario + config.experiment + " " + config.run + " " + config.source + " " +
                    to_string(config.tier) + sizes + (config.card_only ? " cuda alone " : " ") + config.keys.dump());
    std::string options;
    for (const auto& [option, value] : config.options) options += ' ' + option + '=' + nlohmann::json(value).dump();
    facts.push_back(scenario + "begins " + to_string(config.dtype) + " seed=" + std::to_string(config.seed) +
                    " dataset=" + (config.dataset.empty() ? "none" : config.dataset) + options);
    for (const auto& criterion : config.criteria)
      facts.push_back(scenario + "criterion " + criterion.measure + " " + criterion.limit());
  }
  // What a kind asks of its scenarios, and what a run's results are held to.
  for (const auto& kind : catalogue().experiments)
    for (const auto& measure : kind.measures)
      if (measure.required) facts.push_back("experiment " + kind.name + " requires " + measure.name);
  for (const auto& run : catalogue().runs) facts.push_back("run " + run.id() + " step " + text_of(run.step_tolerance));
  return facts;
}

int scenario_list_command(const CommandOptions& options, const ScenarioOptions& scenario, bool as_json) {
  auto configs = selected_scenarios(scenario, catalogue());
  if (as_json) {
    std::set<std::string> named;
    for (const auto& planned : planned_scenarios(configs, options)) named.insert(planned.config->name);
    std::erase_if(configs, [&](const ScenarioConfig& config) { return !named.contains(config.name); });
    std::cout << printed_json(everything(configs), 1) << '\n';
    return kExitPass;
  }
  for (const auto& planned : planned_scenarios(configs, options)) {
    const auto& config = *planned.config;
    std::cout << planned.name() << "  (" << config.source << (config.part.empty() ? "" : ", in part") << "; "
              << config.experiment << "; " << to_string(config.tier) << (config.card_only ? ", on a card alone" : "")
              << ")\n  " << config.summary << "\n  baseline: " << config.baseline_shows
              << "\n  optimized: " << config.optimized_shows << '\n';
  }
  return kExitPass;
}

}  // namespace twinbench
