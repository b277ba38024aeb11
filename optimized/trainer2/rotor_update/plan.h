// What both paths of trainer2.rotor_update share: the arguments of every update.
#pragma once

#include "kernels/trainer2/rotor_update/arguments.h"
#include "optimized/trainer2/common/stepped_update.h"

namespace twinbench::trainer2::rotor_update {

class Plan : public SteppedUpdate<Arguments> {
 public:
  Plan(const NamedTensors& inputs, const Setting& setting)
      : SteppedUpdate(inputs, setting),
        velocity_step_(inputs["mean_velocity"].stride(0)),
        change_step_(inputs["lior_change"].stride(0)) {
    const at::Tensor& velocity = inputs["mean_velocity"];
    first_ = {.planes = setting.size("planes"),
              .rate = static_cast<float>(0.01 * setting.option("update_rate")),
              .first_axis = first_axes(),
              .second_axis = second_axes(),
              .velocity = velocity.const_data_ptr<float>(),
              .velocity_stride = velocity.stride(1),
              .lior_change = inputs["lior_change"].const_data_ptr<float>(),
              .theta = data<float>(results_["theta"]),
              .updates = data<std::int64_t>(results_["updates"]),
              .mean_change = data<float>(results_["mean_change"])};
  }

 private:
  Arguments of_step(std::int64_t step) const override {
    Arguments arguments = first_;
    arguments.velocity += step * velocity_step_;
    arguments.lior_change += step * change_step_;
    arguments.updates += step;
    arguments.mean_change += step;
    return arguments;
  }

  std::int64_t velocity_step_, change_step_;
  Arguments first_;
};

}  // namespace twinbench::trainer2::rotor_update
