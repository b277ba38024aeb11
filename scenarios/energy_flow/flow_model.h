// The flow model of one step, wired from registry components: neuron -> GRU -> heads over given flows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scenarios/runner/config.h"
#include "src/registry.h"

namespace twinbench {

// The weights of the three components and the flows they start from.
struct FlowState {
  at::Tensor position;     // [flows, 3], normalised coordinates
  at::Tensor energy;       // [flows]
  at::Tensor hidden;       // [layers, flows, hidden]
  at::Tensor sample_key;   // [flows], int64
  at::Tensor local_id;     // [flows], int64
  std::int64_t flows() const { return position.size(0); }
  FlowState first(std::int64_t count) const;  // views of the first flows, hidden copied
};

// The step of all flows with one variant. The baseline takes them one at a time, gathering each flow's buffers before and
// scattering them after every component, as the documents describe; the others take all of them at once, each component
// reading the buffers that the one before it writes.
class FlowStep {
 public:
  virtual ~FlowStep() = default;
  virtual void run() = 0;
  virtual NamedTensors outputs() = 0;  // features, carried, next_hidden and the heads' outputs, all flows
};

std::unique_ptr<FlowStep> make_flow_step(Variant variant, const ScenarioConfig& config, const FlowState& state, Dtype dtype);

}  // namespace twinbench
