// `twinbench scenario` and `twinbench list --scenarios`: declared here so that main needs no header of scenarios/,
// where they are defined.
#pragma once

#include <string>
#include <vector>

#include "harness/command/command.h"

namespace twinbench {

// Returns the ledger's exit code.
int scenario_command(const CommandOptions& options, const ScenarioOptions& scenario);

// What there is, without running it: as a table, or as JSON {"scenarios": [...], "experiments": [...], "runs": [...]}.
int scenario_list_command(const CommandOptions& options, const ScenarioOptions& scenario, bool as_json);

// What the scenarios below `folder` are judged by, one line a criterion, with its limit and what the scenario is.
std::vector<std::string> scenario_facts(const std::string& folder);

}  // namespace twinbench
