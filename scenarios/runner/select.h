// Which scenarios a command line means, and on which devices.
#pragma once

#include <string>
#include <vector>

#include "harness/command/scenario.h"
#include "scenarios/runner/catalogue.h"

namespace twinbench {

// The scenario of that name or file, or all below the folder up to the tier. Throws kUnknownName where that leaves
// none, and whatever reading throws: a file that is wrong is an error, whether it is wanted or not.
std::vector<ScenarioConfig> selected_scenarios(const ScenarioOptions& scenario, const Catalogue& catalogue);

// A scenario on a device: a row of the record, an entry of the ledger.
struct PlannedScenario {
  const ScenarioConfig* config = nullptr;
  Device device;

  std::string name() const;  // energy_flow/flow_step/cpu: what --filter is matched against
};

// Of each scenario the devices the command line asks for; throws kUnknownName where the filter leaves none.
std::vector<PlannedScenario> planned_scenarios(const std::vector<ScenarioConfig>& configs,
                                               const CommandOptions& options);

}  // namespace twinbench
