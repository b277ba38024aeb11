// What both paths of trainer2.rotor_update share: the plane table made at set-up, the advanced angles, and arguments.
#pragma once

#include <ATen/ATen.h>

#include "kernels/trainer2/rotor_update/arguments.h"
#include "optimized/common/tensors.h"
#include "optimized/trainer2/common/plane_table.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::rotor_update {

class Plan : public Runnable {
 public:
  Plan(const NamedTensors& inputs, const Setting& setting)
      : given_(inputs["theta"]),
        velocity_(inputs["mean_velocity"]),
        lior_change_(inputs["lior_change"]),
        results_(empty_results(setting)),
        steps_(setting.size("steps")) {
    check_planes(inputs["plane_axes"], setting.size("axes"));
    axes_ = axes_of_planes(inputs["plane_axes"], setting.size("planes"));
    first_ = {.planes = setting.size("planes"),
              .rate = static_cast<float>(0.01 * setting.option("update_rate")),
              .first_axis = axes_.const_data_ptr<std::int32_t>(),
              .second_axis = axes_.const_data_ptr<std::int32_t>() + axes_.size(1),
              .velocity = velocity_.const_data_ptr<float>(),
              .velocity_stride = velocity_.stride(1),
              .lior_change = lior_change_.const_data_ptr<float>(),
              .theta = data<float>(results_["theta"]),
              .updates = data<std::int64_t>(results_["updates"]),
              .mean_change = data<float>(results_["mean_change"])};
    Plan::reset();
  }

  void reset() override { results_["theta"].copy_(given_); }
  NamedTensors outputs() override { return results_; }

 protected:
  std::int64_t steps() const { return steps_; }
  Arguments of_step(std::int64_t step) const {
    Arguments arguments = first_;
    arguments.velocity += step * velocity_.stride(0);
    arguments.lior_change += step * lior_change_.stride(0);
    arguments.updates += step;
    arguments.mean_change += step;
    return arguments;
  }

 private:
  at::Tensor given_, velocity_, lior_change_, axes_;
  NamedTensors results_;
  std::int64_t steps_;
  Arguments first_;
};

}  // namespace twinbench::trainer2::rotor_update
