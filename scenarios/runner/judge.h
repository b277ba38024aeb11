// One scenario from file to row: run by its kind, each criterion judged.
#pragma once

#include <nlohmann/json.hpp>

#include "scenarios/runner/catalogue.h"

namespace twinbench {

// How often a scenario runs whose times fail it: a slow moment of the machine is not there each time.
constexpr int kRunsOfFailingTimes = 3;

// The record's row. Fails where a criterion fails; is skipped where none could be judged.
nlohmann::json judged(const ScenarioConfig& config, const Findings& findings, const Device& device);

// The row of its only run, or, where criteria failed by times alone, of the first further run in which not, else of the
// last: `failed_before` has what each earlier one failed by.
nlohmann::json run_scenario(const ScenarioConfig& config, const Catalogue& catalogue, const Device& device, bool quick);

// Devices that the run's components have a path for, whatever the machine has: cpu, cuda, simt.
std::vector<Device> devices_of(const RunSource& source);

}  // namespace twinbench
