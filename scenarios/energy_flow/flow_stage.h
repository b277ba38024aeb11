// A component of the flow model at a scenario's sizes, with the model's weights.
#pragma once

#include <memory>

#include "scenarios/runner/config.h"
#include "scenarios/runner/training_run.h"
#include "src/registry.h"

namespace twinbench::energy_flow {

constexpr const char* kNeuron = "energy_flow.simple_neuron";
constexpr const char* kCarrier = "energy_flow.energy_carrier";
constexpr const char* kHeads = "energy_flow.carrier_heads";

struct Stage {
  const Component* component = nullptr;
  Setting setting;
  NamedTensors weights;  // the same for every variant and number of flows

  Stage(const char* id, const ScenarioConfig& config, std::int64_t flows, const RunSetting& run);
  // From these weights and the flows' own inputs; a backward pass also takes the outputs' gradients.
  std::unique_ptr<Runnable> make(Variant variant, const NamedTensors& flow_inputs, Pass pass = Pass::kForward) const;
};

}  // namespace twinbench::energy_flow
