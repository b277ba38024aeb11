// What both paths of trainer2.metric_update share: the plane table made at set-up, the advanced state, and arguments.
#pragma once

#include <ATen/ATen.h>

#include "kernels/trainer2/metric_update/arguments.h"
#include "optimized/common/tensors.h"
#include "optimized/trainer2/common/plane_table.h"
#include "src/trainer2/common/metric_state.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::metric_update {

class Plan : public Runnable {
 public:
  Plan(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs), results_(empty_results(setting)), steps_(setting.size("steps")) {
    const std::int64_t planes = setting.size("planes");
    check_metric(inputs["metric"]);
    check_planes(inputs["plane_axes"], setting.size("axes"));
    axes_ = axes_of_planes(inputs["plane_axes"], planes);
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
              .first_axis = axes_.const_data_ptr<std::int32_t>(),
              .second_axis = axes_.const_data_ptr<std::int32_t>() + axes_.size(1),
              .metric = data<float>(results_["metric"]),
              .coupling = data<float>(results_["coupling"]),
              .rejects = data<std::int64_t>(results_["rejects"]),
              .report = data<float>(results_["report"])};
    Plan::reset();
  }

  void reset() override {
    for (const char* name : {"metric", "coupling", "rejects"}) results_[name].copy_(inputs_[name]);
  }
  NamedTensors outputs() override { return results_; }

 protected:
  std::int64_t steps() const { return steps_; }
  Arguments of_step(std::int64_t step) const {
    Arguments arguments = first_;
    arguments.velocity += step * inputs_["velocity"].stride(0);
    arguments.lior_free += step * inputs_["lior_free"].stride(0);
    arguments.lior_nudged += step * inputs_["lior_nudged"].stride(0);
    arguments.report += 3 * step;
    return arguments;
  }

 private:
  NamedTensors inputs_, results_;
  at::Tensor axes_;
  std::int64_t steps_;
  Arguments first_;
};

}  // namespace twinbench::trainer2::metric_update
