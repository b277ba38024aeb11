// A component as a training run: what a scenario may say of it is its signature, a step is one run of a variant.
#pragma once

#include <memory>
#include <string>

#include "scenarios/runner/training_run.h"

namespace twinbench {

struct ScenarioConfig;

// Sizes and options as the component's own tables declare them; an option that a file leaves out has its default there.
// The caller adds `prepare`, which calls component_workload(). Throws kUnknownName where there is no such component.
RunSource component_source(const std::string& id, std::string summary, const Tolerance& step_tolerance);

// Every run begins with the inputs that the scenario's seed draws. A component that has state goes on from where its
// last step left it, the others do the same again. Items are the component's batch items.
std::unique_ptr<Workload> component_workload(const std::string& id, const ScenarioConfig& config);

}  // namespace twinbench
