// What both paths of energy_flow.flow_backward share: how many samples, which half, the results and what a pass finds.
#pragma once

#include "optimized/common/tensors.h"
#include "optimized/energy_flow/common/flow_places.h"
#include "src/component.h"
#include "src/energy_flow/common/flow_work.h"

namespace twinbench::energy_flow::flow_backward {

class Plan : public Runnable {
 protected:
  explicit Plan(const Setting& setting)
      : samples_(setting.size("samples")), backward_(setting.backward()), results_(zero_results(setting)) {}

  flow_forward::FlowPlaces places(const NamedTensors& inputs) const {
    flow_forward::FlowPlaces of{.initial_energy = inputs["initial_energy"].contiguous(),
                                .sample_key = inputs["sample_key"].contiguous()};
    if (backward_)
      of.grad_surface = inputs["grad_surface"].contiguous(), of.grad_initial_energy = results_["grad_initial_energy"],
      of.tape_bytes = results_["work"].narrow(0, kTapeBytes, flow_forward::kTapeColumns);
    else
      of.surface = results_["surface"], of.margin = results_["margin"];
    return of;
  }

  const std::int64_t samples_;
  const bool backward_;
  NamedTensors results_;
};

}  // namespace twinbench::energy_flow::flow_backward
