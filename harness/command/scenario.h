// `twinbench scenario`: declared here so that main needs no scenario header; defined in scenarios/runner.
#pragma once

#include <string>

#include "harness/command/command.h"

namespace twinbench {

// Runs the scenario of that name (or file), or all below `folder`. Returns the ledger's exit code.
int scenario_command(const CommandOptions& options, const std::string& folder, const std::string& name);

}  // namespace twinbench
