// Selection by name or file, tier, filter and device.
#include "scenarios/runner/select.h"

#include <algorithm>
#include <filesystem>

#include "src/common/error.h"
#include "src/common/filter_pattern.h"
#include "src/common/nearest_name.h"

namespace twinbench {

std::vector<ScenarioConfig> selected_scenarios(const ScenarioOptions& scenario, const Catalogue& catalogue) {
  const auto& name = scenario.name;
  if (std::filesystem::is_regular_file(name)) return {read_scenario(name, catalogue)};
  auto configs = read_scenarios(scenario.folder, catalogue);
  std::vector<std::string> names;
  for (const auto& config : configs) names.push_back(config.name);
  if (name.empty()) {
    const auto largest = tier_named(scenario.tier, "--tier");
    std::erase_if(configs, [&](const ScenarioConfig& config) { return config.tier > largest; });
    if (configs.empty())
      throw Error(ErrorKind::kUnknownName, "--tier", scenario.tier,
                  "no scenario in " + scenario.folder + " is so small");
    return configs;
  }
  std::erase_if(configs, [&](const ScenarioConfig& config) {
    return name != config.name && name != config.pipeline() + "/" + config.name;
  });
  if (configs.empty())
    throw Error(ErrorKind::kUnknownName, "scenario", name,
                "there is no such scenario in " + scenario.folder + did_you_mean(name, names));
  return configs;
}

std::string PlannedScenario::name() const { return config->pipeline() + "/" + config->name + "/" + to_string(device); }

std::vector<PlannedScenario> planned_scenarios(const std::vector<ScenarioConfig>& configs,
                                               const CommandOptions& options) {
  const FilterPattern pattern(options.filter);
  std::vector<PlannedScenario> planned;
  for (const auto& config : configs)
    for (const Device& device : {Device(c10::DeviceType::CPU), Device(c10::DeviceType::CUDA), Device::simt()}) {
      const PlannedScenario one{&config, device};
      const bool wanted = options.device == "all" || options.device == to_string(device);
      if (wanted && pattern.found_in(one.name())) planned.push_back(one);
    }
  if (planned.empty()) {
    std::vector<std::string> names;
    for (const auto& config : configs) names.push_back(config.name);
    throw Error(ErrorKind::kUnknownName, "--filter", options.filter,
                "it matches no <pipeline>/<scenario>/<device>" + did_you_mean(options.filter, names));
  }
  return planned;
}

}  // namespace twinbench
