// What both paths of energy_flow.surface_collection share: inputs laid out as loops and kernels take them, results.
#pragma once

#include "kernels/energy_flow/surface_collection/arguments.h"
#include "optimized/common/tensors.h"

namespace twinbench::energy_flow::surface_collection {

class Plan : public Runnable {
 public:
  Plan(const NamedTensors& inputs, const Setting& setting) : results_(empty_results(setting)) {
    // Read by every run, so that new contents are seen: what lies in order already is no copy.
    for (const auto& [name, tensor] : inputs) inputs_.set(name, tensor.contiguous());
    const auto floats = [&](const char* name) { return inputs_[name].const_data_ptr<float>(); };
    const auto whole = [&](const char* name) { return inputs_[name].const_data_ptr<std::int32_t>(); };
    const auto extent = [&](const char* name) { return static_cast<int>(setting.size(name)); };
    const bool backward = setting.backward();
    arguments_ = {.batch = extent("batch"),
                  .width = extent("width"),
                  .height = extent("height"),
                  .slots = extent("slots"),
                  .forward = static_cast<std::int32_t>(setting.option("forward")),
                  .energy = floats("energy"),
                  .position = floats("position"),
                  .distance = floats("distance"),
                  .age = whole("age"),
                  .status = inputs_["status"].const_data_ptr<std::uint8_t>(),
                  .forward_id = whole("forward_id"),
                  .grad_surface = backward ? floats("grad_surface") : nullptr,
                  .grad_energy = backward ? data<float>(results_["grad_energy"]) : nullptr,
                  .surface = backward ? nullptr : data<float>(results_["surface"]),
                  .cell = backward ? nullptr : data<std::int32_t>(results_["cell"])};
  }

  NamedTensors outputs() override { return results_; }

 protected:
  NamedTensors inputs_, results_;
  Arguments arguments_;
};

}  // namespace twinbench::energy_flow::surface_collection
