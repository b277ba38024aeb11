// What both paths of trainer2.fused_retrieval share: checked inputs, laid out as the loops and kernels take them.
#pragma once

#include <ATen/ATen.h>

#include "kernels/trainer2/fused_retrieval/arguments.h"
#include "optimized/common/tensors.h"
#include "optimized/trainer2/common/plane_table.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::fused_retrieval {

inline Stored stored_as(Dtype dtype) {
  return dtype == Dtype::kFp16 ? Stored::kHalf : dtype == Dtype::kBf16 ? Stored::kBfloat : Stored::kFloat;
}

class Plan : public Runnable {
 public:
  // `bank_states`: as this path stores them.
  Plan(const NamedTensors& inputs, const Setting& setting, at::Tensor bank_states)
      : results_(empty_results(setting)), bank_states_(std::move(bank_states)) {
    const std::int64_t tokens = setting.size("tokens"), capacity = setting.size("capacity");
    axes_ = axes_of_planes(inputs["plane_axes"], setting.size("planes"));
    inspected_ = inputs["inspected"].to(at::kInt).contiguous();
    // Read by every run, so that new contents are seen: what lies in order already is no copy.
    for (const auto& [name, tensor] : inputs)
      if (name != "plane_axes" && name != "inspected") inputs_.set(name, tensor.contiguous());
    const auto floats = [&](const char* name) { return inputs_[name].const_data_ptr<float>(); };
    arguments_ = {.batch = static_cast<int>(setting.size("batch")),
                  .tokens = static_cast<int>(tokens),
                  .capacity = static_cast<int>(capacity),
                  .width = static_cast<int>(setting.size("width")),
                  .axes = static_cast<int>(setting.size("axes")),
                  .planes = static_cast<int>(setting.size("planes")),
                  .inspected = static_cast<int>(setting.size("inspected")),
                  .stored = stored_as(setting.dtype),
                  .beta = static_cast<float>(setting.option("beta")),
                  .query = floats("query"),
                  .curvature = floats("curvature"),
                  .token_coordinates = floats("token_coordinates"),
                  .token_states = floats("token_states"),
                  .mask = floats("mask"),
                  .bank_coordinates = floats("bank_coordinates"),
                  .bank_states = bank_states_.const_data_ptr(),
                  .filled = inputs_["filled"].const_data_ptr<std::int64_t>(),
                  .metric = floats("metric"),
                  .theta = floats("theta"),
                  .first_axis = axes_.const_data_ptr<std::int32_t>(),
                  .second_axis = axes_.const_data_ptr<std::int32_t>() + axes_.size(1),
                  .of_weights = inspected_.const_data_ptr<std::int32_t>(),
                  .mix = data<float>(results_["mix"]),
                  .weights = data<float>(results_["weights"])};
  }

  NamedTensors outputs() override { return results_; }

 protected:
  NamedTensors inputs_, results_;
  Arguments arguments_;

 private:
  at::Tensor bank_states_, axes_, inspected_;
};

}  // namespace twinbench::trainer2::fused_retrieval
