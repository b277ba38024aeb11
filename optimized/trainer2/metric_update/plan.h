// What both paths of trainer2.metric_update share: the arguments of every update.
#pragma once

#include "kernels/trainer2/metric_update/arguments.h"
#include "optimized/trainer2/common/stepped_update.h"
#include "src/trainer2/common/metric_state.h"

namespace twinbench::trainer2::metric_update {

class Plan : public SteppedUpdate<Arguments> {
 public:
  Plan(const NamedTensors& inputs, const Setting& setting)
      : SteppedUpdate(inputs, setting),
        velocity_step_(inputs["velocity"].stride(0)),
        free_step_(inputs["lior_free"].stride(0)),
        nudged_step_(inputs["lior_nudged"].stride(0)) {
    const std::int64_t planes = setting.size("planes");
    // Read by every run: strides instead of copies, so that new contents are seen.
    const at::Tensor &velocity = inputs["velocity"], &theta = inputs["theta"];
    first_ = {.axes = static_cast<int>(setting.size("axes")),
              .planes = static_cast<int>(planes),
              .layer = planes_at_once(inputs["plane_axes"], planes, setting.size("per_layer")),
              .blocks = setting.on("block_rot"),
              .batch = velocity.size(1),
              .most_rejects = static_cast<std::int64_t>(setting.option("most_rejects")),
              .rate = static_cast<float>(setting.option("update_rate")),
              .velocity = velocity.const_data_ptr<float>(),
              .batch_stride = velocity.stride(1),
              .axis_stride = velocity.stride(2),
              .lior_free = inputs["lior_free"].const_data_ptr<float>(),
              .lior_nudged = inputs["lior_nudged"].const_data_ptr<float>(),
              .theta = theta.const_data_ptr<float>(),
              .theta_stride = theta.stride(0),
              .first_axis = first_axes(),
              .second_axis = second_axes(),
              .metric = data<float>(results_["metric"]),
              .coupling = data<float>(results_["coupling"]),
              .rejects = data<std::int64_t>(results_["rejects"]),
              .report = data<float>(results_["report"])};
  }

 private:
  Arguments of_step(std::int64_t step) const override {
    Arguments arguments = first_;
    arguments.velocity += step * velocity_step_;
    arguments.lior_free += step * free_step_;
    arguments.lior_nudged += step * nudged_step_;
    arguments.report += 3 * step;
    return arguments;
  }

  std::int64_t velocity_step_, free_step_, nudged_step_;
  Arguments first_;
};

}  // namespace twinbench::trainer2::metric_update
