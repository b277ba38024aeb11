// Sizes, options and components that every training run of the flow model has.
#pragma once

#include "scenarios/runner/training_run.h"

namespace twinbench::energy_flow {

void take_flow_keys(RunSource& source);

}  // namespace twinbench::energy_flow
