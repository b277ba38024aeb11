// Training windows of the flow model: gradients of neuron, carrier and heads over a batch of flows, and their update.
#pragma once

#include <memory>

#include "scenarios/energy_flow/flow_state.h"
#include "scenarios/runner/training_run.h"

namespace twinbench::energy_flow {

// A window takes every flow one step from `state` and pulls its energy and position to drawn targets:
// loss = sum over flows of ((energy - target)^2 + |raw - target|^2) / (2 flows), descended by learning_rate. Gradients
// are those of the components' own backward passes, chained. The baseline makes a micro-batch's buffers and runnables
// anew and keeps them until the window ends (after sins M3 and N4; a component's tape goes with its backward pass), and
// reads its loss back after each (N2);
// the optimized run has those of one micro-batch and reads nothing back.
std::unique_ptr<WindowRun> make_flow_window(const ScenarioConfig& config, const RunSetting& setting, FlowState state);

}  // namespace twinbench::energy_flow
