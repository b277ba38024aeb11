// All flows of a batch at once by LibTorch's own operators, with or without autograd's tape: what the library variants
// of the whole flow's two passes share.
//
// In the networks each flow has a place of its own, live or not: in their last bits, rows of LibTorch's products depend
// on how many there are and where, and no sample's answer may depend on its neighbours. With the live flows alone it
// takes about three quarters of the time and breaks that rule.
#pragma once

#include <optional>
#include <vector>

#include "baselines/common/tape.h"
#include "baselines/energy_flow/common/live_flows.h"
#include "baselines/energy_flow/common/networks.h"

namespace twinbench::energy_flow::flow_forward {

class FlowsAtOnce : public TapeBaseline {
 protected:
  FlowsAtOnce(const NamedTensors& inputs, const Setting& setting);

  // From the energies [samples, cells] that flows start with: surface, stats, active, margin.
  NamedTensors lived(const at::Tensor& energies) const;

 private:
  struct Networks {
    Neuron neuron;
    std::vector<RecurrentLayer> layers;
    Heads heads;
  };
  const HostRules rules_;
  const ExplorationNoise noise_;
  std::optional<Networks> networks_;  // of the tape's leaves
};

}  // namespace twinbench::energy_flow::flow_forward
