// The flow model wired from registry components: neuron -> GRU -> heads, and back into the flows' state.
#pragma once

#include <memory>

#include "scenarios/energy_flow/flow_state.h"
#include "scenarios/runner/training_run.h"

namespace twinbench::energy_flow {

// Steps of all flows with one variant, from `state`, which becomes the run's own. The baseline takes the flows one at
// a time, gathering each one's buffers before a step and scattering them after every component, as the documents
// describe; the optimized run takes all of them at once, each component reading the buffers that the one before writes.
// A step ends with position := raw, energy := energy, hidden := next hidden: boundaries and termination (C10) are not
// in it, and the noise of every step is that of step 0, for the step's number belongs to the heads' set-up.
std::unique_ptr<TrainingRun> make_flow_run(const ScenarioConfig& config, const RunSetting& setting, FlowState state);

}  // namespace twinbench::energy_flow
